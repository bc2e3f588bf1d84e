//! The queues and the number of their jobs.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{OptionalExtension, params};

use super::events;
use super::rates;
use super::retry_rules;
use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use crate::{Pause, Queue, QueueUpdate, StoreError, Update};
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// The row id of a queue, which is created if it is new.
pub(crate) fn id(tx: &Tx<'_>, name: &QueueName) -> Result<i64, StoreError> {
    if let Some(id) = find_id(tx, name)? {
        return Ok(id);
    }
    let mut insert = tx.prepare("insert into queues (name, created_at) values (?1, ?2)")?;
    Ok(insert.insert(params![name.as_str(), tx.now.as_millis()])?)
}

pub(crate) fn find_id(tx: &Tx<'_>, name: &QueueName) -> Result<Option<i64>, StoreError> {
    let mut select = tx.prepare("select id from queues where name = ?1")?;
    Ok(select.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

pub(crate) fn is_open(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select paused_at is null from queues where id = ?1")?;
    Ok(select.query_row([id], |row| row.get(0))?)
}

pub(crate) fn pause(tx: &Tx<'_>, queue: &QueueName, pause: &Pause) -> Result<(), StoreError> {
    tx.prepare("update queues set paused_at = ?2, paused_by = ?3, pause_reason = ?4 where id = ?1")?
        .execute(params![id(tx, queue)?, tx.now.as_millis(), pause.by, pause.reason])?;
    events::record(tx, None, "pause", &pause.by, Some(queue.as_str()))
}

pub(crate) fn resume(tx: &Tx<'_>, queue: &QueueName, by: &str) -> Result<(), StoreError> {
    tx.prepare("update queues set paused_at = null, paused_by = null, pause_reason = null where id = ?1")?
        .execute([id(tx, queue)?])?;
    // Its ready jobs can run now.
    tx.note_ready();
    events::record(tx, None, "resume", by, Some(queue.as_str()))
}

pub(crate) fn set(tx: &Tx<'_>, queue: &QueueName, update: &QueueUpdate, by: &str) -> Result<(), StoreError> {
    let id = id(tx, queue)?;
    if update.concurrency != Update::Keep {
        tx.prepare("update queues set concurrency = ?2 where id = ?1")?
            .execute(params![id, update.concurrency.apply(None)])?;
    }
    if update.rate != Update::Keep {
        rates::set(tx, id, update.rate.apply(None))?;
    }
    if update.limits != Update::Keep {
        set_limits(tx, id, update.limits.apply(None))?;
    }
    retry_rules::set(tx, id, update)?;
    // The queue may have more capacity now.
    tx.note_ready();
    let changes = [
        update.concurrency.describe("concurrency"),
        update.rate.describe("rate"),
        update.limits.describe("limits"),
        update.retry_on.describe("retry_on"),
        update.no_retry_on.describe("no_retry_on"),
    ];
    let changes: Vec<String> = changes.into_iter().flatten().collect();
    events::record(tx, None, "set", by, Some(&format!("queue {queue}: {}", changes.join(", "))))
}

fn set_limits(tx: &Tx<'_>, id: i64, limits: Option<Limits>) -> Result<(), StoreError> {
    let limits = limits.filter(|limits| !limits.is_none()).map(|limits| limits.to_string());
    tx.prepare("update queues set limits = ?2 where id = ?1")?.execute(params![id, limits])?;
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Queue>, StoreError> {
    let mut counts = counts(tx)?;
    let mut select = tx.prepare(
        "select id, name, paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, rate_tokens,
                rate_refilled_at, limits, retry_on, no_retry_on
         from queues order by name",
    )?;
    let mut rows = select.query([])?;
    let mut queues = Vec::new();
    while let Some(row) = rows.next()? {
        let by: Option<String> = row.get(3)?;
        let pause = by.map(|by| Ok::<_, StoreError>(Pause { by, reason: row.get(4)? })).transpose()?;
        let since: Option<Timestamp> = row::time(row, 2)?;
        let meter = rates::read(tx, row, 6)?;
        queues.push(Queue {
            paused: since.zip(pause),
            concurrency: row.get(5)?,
            rate: meter.map(|meter| meter.rate),
            next_start_at: meter.and_then(|meter| meter.next_token_at(tx.now)),
            limits: row::limits(row, 10)?,
            retry: retry_rules::read(row, 11)?,
            ..Queue::new(row::name(row, 1)?, counts.remove(&row.get(0)?).unwrap_or_default())
        });
    }
    Ok(queues)
}

type Counts = HashMap<i64, BTreeMap<StateName, u64>>;

fn counts(tx: &Tx<'_>) -> Result<Counts, StoreError> {
    let mut select = tx.prepare("select queue_id, state, count from counters where count > 0")?;
    let mut rows = select.query([])?;
    let mut counts = Counts::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(1)?;
        let state = StateName::from_name(&word).ok_or_else(|| malformed("state", &word))?;
        counts.entry(row.get(0)?).or_default().insert(state, row.get(2)?);
    }
    Ok(counts)
}
