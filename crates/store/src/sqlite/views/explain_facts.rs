//! The facts that explain why a job does not run: its dependencies, its queue, and the jobs ahead of it.

use rusqlite::params;

use super::{capacity, find};
use crate::sqlite::jobs::dependencies;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, malformed};
use crate::sqlite::session::tx::{Tx, from_millis};
use crate::sqlite::tables::rates;
use crate::{ExplainFacts, StoreError};
use domain::explain::{Count, Durations, QueueFacts};
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;

/// How many of its unfinished dependencies are named.
const MAX_DEPENDENCIES_NAMED: usize = 5;
/// How many jobs ahead of it are counted at most.
const MAX_AHEAD_COUNTED: u64 = 1_000;
/// How many recent attempts give the average duration of a queue's jobs.
const ATTEMPTS_MEASURED: usize = 20;

pub(crate) fn explain_facts(tx: &Tx<'_>, id: &JobId) -> Result<Option<ExplainFacts>, StoreError> {
    let (Some(job), Some(known)) = (find::find(tx, id)?, row::by_id(tx, id)?) else {
        return Ok(None);
    };
    Ok(Some(ExplainFacts {
        job,
        now: tx.now,
        waits_for: waits_for(tx, known.seq)?,
        queue: queue(tx, known.queue_id)?,
        ahead_in_queue: ahead_in(tx, known.queue_id, &known)?,
        ahead_elsewhere: ahead_elsewhere(tx, &known)?,
        durations: durations(tx, known.queue_id)?,
    }))
}

fn waits_for(tx: &Tx<'_>, seq: i64) -> Result<Vec<(JobId, StateName)>, StoreError> {
    let mut jobs = Vec::new();
    for parent_seq in dependencies::waited_for(tx, seq)?.into_iter().take(MAX_DEPENDENCIES_NAMED) {
        let parent = row::by_seq(tx, parent_seq)?;
        jobs.push((parent.id, parent.life.state.name()));
    }
    Ok(jobs)
}

pub(crate) fn queue(tx: &Tx<'_>, queue_id: i64) -> Result<QueueFacts, StoreError> {
    let mut select = tx.prepare(
        "select paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, rate_tokens,
                rate_refilled_at,
                (select count from counters where queue_id = queues.id and state = 'processing')
         from queues where id = ?1",
    )?;
    let mut rows = select.query([queue_id])?;
    let row = rows.next()?.ok_or_else(|| malformed("queue", "it is missing"))?;
    let paused_at: Option<Timestamp> = row::time(row, 0)?;
    let paused_by: Option<String> = row.get(1)?;
    let reason: Option<String> = row.get(2)?;
    Ok(QueueFacts {
        paused: paused_at.zip(paused_by).map(|(at, by)| (at, by, reason)),
        concurrency: row.get(3)?,
        meter: rates::read(tx, row, 4)?,
        running: row.get::<_, Option<u64>>(8)?.unwrap_or(0),
    })
}

/// Jobs ahead in other open queues. Jobs that their queue's limits hold back let others pass.
fn ahead_elsewhere(tx: &Tx<'_>, job: &JobRow) -> Result<Count, StoreError> {
    let mut select = tx.prepare("select id from queues where paused_at is null and id <> ?1")?;
    let rows = select.query_map([job.queue_id], |row| row.get(0))?;
    let others: Vec<i64> = rows.collect::<Result<_, _>>()?;
    let mut sum = Count { least: 0, is_exact: true };
    for queue_id in others {
        let (ahead, available) = (ahead_in(tx, queue_id, job)?, capacity::available(tx, queue_id)? as u64);
        let is_exact = ahead.is_exact || available <= ahead.least;
        sum = Count { least: sum.least + ahead.least.min(available), is_exact: sum.is_exact && is_exact };
    }
    Ok(sum)
}

fn ahead_in(tx: &Tx<'_>, queue_id: i64, job: &JobRow) -> Result<Count, StoreError> {
    let more_urgent: u64 = tx
        .prepare("select count(*) from (select 1 from ready where queue_id = ?1 and priority > ?2 limit ?3)")?
        .query_row(params![queue_id, job.priority, MAX_AHEAD_COUNTED], |row| row.get(0))?;
    let earlier: u64 = tx
        .prepare(
            "select count(*) from (select 1 from ready
                                   where queue_id = ?1 and priority = ?2 and (due_at, seq) < (?3, ?4) limit ?5)",
        )?
        .query_row(params![queue_id, job.priority, job.life.due_at.as_millis(), job.seq, MAX_AHEAD_COUNTED], |row| {
            row.get(0)
        })?;
    let least = (more_urgent + earlier).min(MAX_AHEAD_COUNTED);
    Ok(Count { least, is_exact: least < MAX_AHEAD_COUNTED })
}

fn durations(tx: &Tx<'_>, queue_id: i64) -> Result<Option<Durations>, StoreError> {
    // By index jobs_by_queue.
    let mut select = tx.prepare(
        "select a.duration_ms from jobs j cross join attempts a on a.seq = j.seq and a.number = j.attempts
         where j.queue_id = ?1 and j.state = 'completed' order by j.seq desc limit ?2",
    )?;
    let rows = select.query_map(params![queue_id, ATTEMPTS_MEASURED], |row| row.get(0))?;
    let measured: Vec<i64> = rows.collect::<Result<_, _>>()?;
    let Ok(count) = u32::try_from(measured.len()) else {
        return Ok(None);
    };
    let sum = from_millis(measured.iter().sum());
    Ok((count > 0).then(|| Durations { attempts: count.into(), average: sum / count }))
}
