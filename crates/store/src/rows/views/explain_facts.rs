//! The facts that explain why a job does not run: its dependencies, its queue, and the jobs ahead of it.

use std::time::Duration;

use super::{capacity, find, starvation};
use crate::Result;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, malformed};
use crate::rows::keys::{JobSeq, QueueKey};
use crate::rows::tables::{queues, rates};
use crate::rows::tx::Tx;
use crate::rows::{named, params, wording};
use domain::explain::{Count, Durations, Facts, QueueFacts, WorkerFacts};
use domain::job::life::StateName;
use domain::values::name::JobId;

/// How many of its unfinished dependencies are named.
const MAX_DEPENDENCIES_NAMED: usize = 5;
/// How many jobs ahead of it are counted at most.
const MAX_AHEAD_COUNTED: u64 = 1_000;
/// How many recent attempts give the average duration of a queue's jobs.
const ATTEMPTS_MEASURED: usize = 20;

pub(crate) fn explain_facts(tx: &Tx<'_>, id: &JobId) -> Result<Option<Facts>> {
    let (Some(job), Some(known)) = (find::find(tx, id)?, row::by_id(tx, id)?) else {
        return Ok(None);
    };
    let ahead_in_queue = ahead_in(tx, known.queue_id, &known)?;
    let elsewhere = ahead_elsewhere(tx, &known)?;
    let due_at = known.life.due_at;
    let overtaken = starvation::is_overtaken(tx, known.queue_id, known.priority.into(), due_at)?;
    Ok(Some(Facts {
        job,
        now: tx.now,
        waits_for: waits_for(tx, known.seq)?,
        queue: queue(tx, known.queue_id)?,
        ahead: Count {
            least: ahead_in_queue.least + elsewhere.least,
            is_exact: ahead_in_queue.is_exact && elsewhere.is_exact,
        },
        ahead_in_queue,
        durations: durations(tx, known.queue_id)?,
        workers: WorkerFacts::default(),
        unkillable: Vec::new(),
        busy_slots: Vec::new(),
        failed_dependency: None,
        overtaken_since: overtaken.then_some(due_at),
    }))
}

fn waits_for(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<(JobId, StateName)>> {
    let mut jobs = Vec::new();
    for parent_seq in dependencies::waited_for(tx, seq)?.into_iter().take(MAX_DEPENDENCIES_NAMED) {
        let parent = row::by_seq(tx, parent_seq)?;
        jobs.push((parent.id, parent.life.state.name()));
    }
    Ok(jobs)
}

pub(crate) fn queue(tx: &Tx<'_>, queue_id: QueueKey) -> Result<QueueFacts> {
    let queue = tx.first(
        "select paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, rate_tokens,
                rate_refilled_at,
                (select cast(sum(count) as bigint) from counters where queue_id = queues.id and state = 'processing')
         from queues where id = ?1",
        params![queue_id],
        |row| {
            Ok(QueueFacts {
                paused: queues::read_pause(row)?,
                concurrency: row.get(3)?,
                meter: rates::read(tx, row, 4)?,
                running: row.get::<Option<u64>>(8)?.unwrap_or(0),
            })
        },
    )?;
    queue.ok_or_else(|| malformed("queue", "it is missing"))
}

/// Jobs ahead in other open queues. Jobs that their queue's limits hold back let others pass.
fn ahead_elsewhere(tx: &Tx<'_>, job: &JobRow) -> Result<Count> {
    let others: Vec<QueueKey> = tx.values(
        "select id from queues where paused_at is null and id <> :queue_id",
        named! { queue_id: job.queue_id },
    )?;
    let mut sum = Count { least: 0, is_exact: true };
    for queue_id in others {
        let (ahead, available) =
            (ahead_in(tx, queue_id, job)?, capacity::of_queue(tx, queue_id)?.left as u64);
        let is_exact = ahead.is_exact || available <= ahead.least;
        sum = Count { least: sum.least + ahead.least.min(available), is_exact: sum.is_exact && is_exact };
    }
    Ok(sum)
}

fn ahead_in(tx: &Tx<'_>, queue_id: QueueKey, job: &JobRow) -> Result<Count> {
    let (priority, limit) = (job.priority, MAX_AHEAD_COUNTED);
    let more_urgent = wording!(
        "select count(*) from (select 1 from ready where queue_id = :queue_id and ",
        ("priority > :priority" | "rank < -cast(:priority as bigint)"),
        " limit :limit) ahead"
    );
    let more_urgent: Option<u64> = tx.value(more_urgent.of(tx), named! { queue_id, priority, limit })?;
    let earlier = wording!(
        "select count(*) from (select 1 from ready where queue_id = :queue_id and ",
        ("priority = :priority" | "rank = -cast(:priority as bigint)"),
        " and (due_at, seq) < (:due_at, :seq) limit :limit) ahead"
    );
    let earlier: Option<u64> = tx
        .value(earlier.of(tx), named! { queue_id, priority, due_at: job.life.due_at, seq: job.seq, limit })?;
    let least = (more_urgent.unwrap_or(0) + earlier.unwrap_or(0)).min(MAX_AHEAD_COUNTED);
    Ok(Count { least, is_exact: least < MAX_AHEAD_COUNTED })
}

fn durations(tx: &Tx<'_>, queue_id: QueueKey) -> Result<Option<Durations>> {
    // By index jobs_by_queue.
    let measured: Vec<Duration> = tx.values(
        "select a.duration_ms from jobs j cross join attempts a
         where a.seq = j.seq and a.number = j.attempts and j.queue_id = :queue_id and j.state = 'completed' order by j.seq desc limit :limit",
        named! { queue_id, limit: ATTEMPTS_MEASURED },
    )?;
    let Ok(count) = u32::try_from(measured.len()) else {
        return Ok(None);
    };
    Ok((count > 0)
        .then(|| Durations { attempts: count.into(), average: measured.iter().sum::<Duration>() / count }))
}
