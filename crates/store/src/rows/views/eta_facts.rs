//! The facts for estimating when a batch will be finished.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::explain_facts;
use crate::rows::keys::{BatchKey, QueueKey};
use crate::rows::named;
use crate::rows::tables::{batches, queues};
use crate::rows::tx::Tx;
use crate::{Result, UnfinishedCount};
use domain::batch::eta::{EtaFacts, QueueSample};
use domain::job::life::StateName;
use domain::values::name::{BatchName, QueueName};
use domain::values::timestamp::Timestamp;

/// How many recent attempts give the average duration.
const ATTEMPTS_AVERAGED: usize = 100;
/// How many jobs of a batch are examined: the newest, because the oldest finish first.
const MAX_JOBS_EXAMINED: usize = 1_000;

pub(crate) fn eta_facts(tx: &Tx<'_>, name: &BatchName) -> Result<EtaFacts> {
    let facts = EtaFacts {
        now: tx.now,
        typical: average_duration(tx)?,
        slots: 0,
        longest_running: None,
        last_due_at: None,
        queue_samples: Vec::new(),
    };
    let Some(batch_id) = batches::find_id(tx, name)? else {
        return Ok(facts);
    };
    let (queue_samples, last_due_at) = queue_samples(tx, batch_id)?;
    Ok(EtaFacts { longest_running: longest_running(tx, batch_id)?, last_due_at, queue_samples, ..facts })
}

/// For jobs that the caller has counted by queue. The caller knows since when they run and when they become due.
pub(crate) fn eta_facts_by_queue(
    tx: &Tx<'_>,
    unfinished: &BTreeMap<QueueName, UnfinishedCount>,
) -> Result<EtaFacts> {
    let mut queue_samples = Vec::with_capacity(unfinished.len());
    for (name, UnfinishedCount { unfinished, waiting }) in unfinished {
        if let Some(queue_id) = queues::find_id(tx, name)? {
            let queue = explain_facts::queue(tx, queue_id)?;
            queue_samples.push(QueueSample { unfinished: *unfinished, waiting: *waiting, queue });
        }
    }
    let typical = average_duration(tx)?;
    Ok(EtaFacts { now: tx.now, typical, slots: 0, longest_running: None, last_due_at: None, queue_samples })
}

/// How long the job of this batch that runs longest has run.
fn longest_running(tx: &Tx<'_>, batch_id: BatchKey) -> Result<Option<Duration>> {
    // By index jobs_by_state: there are fewer running jobs than jobs in a batch.
    let since: Option<Option<Timestamp>> = tx.value(
        "select min(started_at) from jobs where state = 'processing' and +batch_id = :batch_id",
        named! { batch_id },
    )?;
    Ok(since.flatten().map(|since| tx.now.since(since)))
}

/// The unfinished jobs by queue, and when the last of those that wait becomes due.
fn queue_samples(tx: &Tx<'_>, batch_id: BatchKey) -> Result<(Vec<QueueSample>, Option<Timestamp>)> {
    let mut queue_samples: BTreeMap<QueueKey, QueueSample> = BTreeMap::new();
    let mut last_due_at = None;
    for (queue_id, state, due_at) in newest(tx, batch_id)? {
        if state.is_finished() {
            continue;
        }
        let sample = match queue_samples.entry(queue_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new
                .insert(QueueSample { queue: explain_facts::queue(tx, queue_id)?, ..QueueSample::default() }),
        };
        sample.unfinished += 1;
        if state != StateName::Processing {
            sample.waiting += 1;
            last_due_at = last_due_at.max(Some(due_at));
        }
    }
    Ok((queue_samples.into_values().collect(), last_due_at))
}

/// The queue, the state and the due time of each job.
fn newest(tx: &Tx<'_>, batch_id: BatchKey) -> Result<Vec<(QueueKey, StateName, Timestamp)>> {
    // Backwards by index jobs_by_batch.
    tx.all(
        "select queue_id, state, due_at from jobs where batch_id = :batch_id order by seq desc limit :limit",
        named! { batch_id, limit: MAX_JOBS_EXAMINED },
        |row| Ok((row.get("queue_id")?, row.get("state")?, row.get("due_at")?)),
    )
}

/// The average duration of the latest attempts of any job; `None` before the first.
fn average_duration(tx: &Tx<'_>) -> Result<Option<Duration>> {
    // Backwards by the primary key of `attempts`.
    let took: Vec<Duration> = tx.values(
        "select duration_ms from attempts where seq <= :newest and outcome <> 'released'
         order by seq desc, number desc limit :limit",
        named! { newest: i64::MAX, limit: ATTEMPTS_AVERAGED },
    )?;
    let count = u32::try_from(took.len()).unwrap_or(u32::MAX);
    Ok((count > 0).then(|| took.iter().sum::<Duration>() / count))
}
