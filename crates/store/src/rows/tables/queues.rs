//! The queues and the number of their jobs.

use std::collections::{BTreeMap, HashMap};

use super::events;
use super::minutes;
use super::rates;
use super::retry_rules;
use crate::rows::keys::QueueKey;
use crate::rows::tx::Tx;
use crate::rows::{Row, named, params};
use crate::{Pause, Queue, QueueRemoval, QueueUpdate, Result, Update};
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// The row id of a queue, which is created if it is new.
pub(crate) fn id(tx: &Tx<'_>, name: &QueueName) -> Result<QueueKey> {
    if let Some(id) = find_id(tx, name)? {
        return Ok(id);
    }
    // On PostgreSQL another enqueue may be creating it: the update waits for that, and changes nothing.
    tx.one(
        "insert into queues (name, created_at) values (?1, ?2)
         on conflict (name) do update set created_at = queues.created_at returning id",
        params![name, tx.now],
        |row| row.get(0),
    )
}

pub(crate) const FIND_ID: &str = "select id from queues where name = ?1";

pub(crate) fn find_id(tx: &Tx<'_>, name: &QueueName) -> Result<Option<QueueKey>> {
    tx.value(FIND_ID, params![name])
}

pub(crate) fn is_open(tx: &Tx<'_>, id: QueueKey) -> Result<bool> {
    tx.one("select paused_at is null from queues where id = ?1", params![id], |row| row.get(0))
}

pub(crate) fn pause(tx: &Tx<'_>, queue: &QueueName, pause: &Pause) -> Result<()> {
    tx.execute(
        "update queues set paused_at = :now, paused_by = :by, pause_reason = :reason where id = :id",
        named! { id: id(tx, queue)?, now: tx.now, by: pause.by, reason: pause.reason },
    )?;
    let detail = match &pause.reason {
        Some(reason) => format!("{queue} ({reason})"),
        None => queue.to_string(),
    };
    events::record(tx, None, "pause", &pause.by, Some(&detail))
}

pub(crate) fn resume(tx: &mut Tx<'_>, queue: &QueueName, by: &str) -> Result<()> {
    tx.execute(
        "update queues set paused_at = null, paused_by = null, pause_reason = null where id = :id",
        named! { id: id(tx, queue)? },
    )?;
    // Its ready jobs can run now.
    tx.note_ready();
    events::record(tx, None, "resume", by, Some(queue.as_str()))
}

pub(crate) fn set(tx: &mut Tx<'_>, queue: &QueueName, update: &QueueUpdate, by: &str) -> Result<()> {
    let id = id(tx, queue)?;
    if update.concurrency != Update::Keep {
        tx.execute(
            "update queues set concurrency = :concurrency where id = :id",
            named! { id, concurrency: update.concurrency.apply(None) },
        )?;
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

pub(crate) fn remove(tx: &Tx<'_>, queue: &QueueName, by: &str) -> Result<QueueRemoval> {
    let Some(id) = find_id(tx, queue)? else {
        return Ok(QueueRemoval::Missing);
    };
    // By index jobs_by_queue. The counters alone are not enough: they may be wrong.
    let job: Option<i64> = tx.value("select seq from jobs where queue_id = ?1 limit 1", params![id])?;
    if job.is_some() {
        let jobs: u64 = tx.one(
            "select cast(coalesce(sum(count), 0) as bigint) as jobs from counters where queue_id = ?1",
            params![id],
            |row| row.get("jobs"),
        )?;
        return Ok(QueueRemoval::InUse { jobs: jobs.max(1) });
    }
    tx.execute("delete from counters where queue_id = ?1", params![id])?;
    minutes::delete_queue(tx, id)?;
    tx.execute("delete from queues where id = ?1", params![id])?;
    events::record(tx, None, "queue_remove", by, Some(queue.as_str()))?;
    Ok(QueueRemoval::Removed)
}

pub(crate) fn pause_of(tx: &Tx<'_>, queue: &QueueName) -> Result<Option<Pause>> {
    tx.first(
        "select paused_by, pause_reason from queues where name = ?1 and paused_at is not null",
        params![queue],
        |row| Ok(Pause { by: row.get("paused_by")?, reason: row.get("pause_reason")? }),
    )
}

fn set_limits(tx: &Tx<'_>, id: QueueKey, limits: Option<Limits>) -> Result<()> {
    let limits = limits.filter(|limits| !limits.is_none()).map(|limits| limits.to_string());
    tx.execute("update queues set limits = :limits where id = :id", named! { id, limits })?;
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Queue>> {
    Ok(list_with_keys(tx)?.into_iter().map(|(_, queue)| queue).collect())
}

/// What tells a queue from one that had the same key before it was removed, or before a backup was restored.
#[derive(Clone, Debug)]
pub(crate) struct QueueIdentity {
    id: QueueKey,
    created_at: Timestamp,
    /// As [`sampled`]: it only grows.
    sampled: u64,
}

impl QueueIdentity {
    pub(crate) fn is_continued_by(&self, later: &Self) -> bool {
        (self.id, self.created_at) == (later.id, later.created_at) && self.sampled <= later.sampled
    }
}

pub(crate) fn identities(tx: &Tx<'_>) -> Result<Vec<QueueIdentity>> {
    let sql = "select id, created_at, coalesce(sampled, 0) as sampled from queues order by id";
    tx.all(sql, params![], |row| {
        Ok(QueueIdentity { id: row.get(0)?, created_at: row.get(1)?, sampled: row.get(2)? })
    })
}

/// All queues by name, each after its key.
pub(crate) fn list_with_keys(tx: &Tx<'_>) -> Result<Vec<(QueueKey, Queue)>> {
    let mut counts = counts(tx)?;
    tx.all(
        "select id, name, paused_at, paused_by, pause_reason, concurrency, rate_count, rate_period_ms, rate_tokens,
                rate_refilled_at, limits, retry_on, no_retry_on
         from queues order by name",
        params![],
        |row| {
            let meter = rates::read(tx, row, 6)?;
            let id = row.get("id")?;
            let queue = Queue {
                paused: read_pause(row)?,
                concurrency: row.get("concurrency")?,
                rate: meter.map(|meter| meter.rate),
                next_start_at: meter.and_then(|meter| meter.next_token_at(tx.now)),
                limits: row.get::<Option<Limits>>("limits")?.unwrap_or_default(),
                retry: retry_rules::read(row, 11)?,
                ..Queue::new(row.get("name")?, counts.remove(&id).unwrap_or_default())
            };
            Ok((id, queue))
        },
    )
}

/// How many of the jobs that were enqueued the samples contain, by queue.
pub(crate) fn sampled(tx: &Tx<'_>) -> Result<Vec<(QueueKey, u64)>> {
    tx.all("select id, coalesce(sampled, 0) as sampled from queues", params![], |row| {
        Ok((row.get("id")?, row.get("sampled")?))
    })
}

/// Notes that a sample contains this many further jobs.
pub(crate) fn add_sampled(tx: &Tx<'_>, id: QueueKey, jobs: u64) -> Result<()> {
    tx.execute(
        "update queues set sampled = coalesce(sampled, 0) + :jobs where id = :id",
        named! { id, jobs },
    )?;
    Ok(())
}

/// Reads the columns `paused_at`, `paused_by` and `pause_reason`.
pub(crate) fn read_pause(row: &Row<'_>) -> Result<Option<(Timestamp, Pause)>> {
    let since: Option<Timestamp> = row.get("paused_at")?;
    let paused = |since| Ok((since, Pause { by: row.get("paused_by")?, reason: row.get("pause_reason")? }));
    since.map(paused).transpose()
}

fn counts(tx: &Tx<'_>) -> Result<HashMap<QueueKey, BTreeMap<StateName, u64>>> {
    let mut counts: HashMap<_, BTreeMap<_, _>> = HashMap::new();
    // In the order of the primary key.
    tx.all(
        "select queue_id, state, cast(sum(count) as bigint) as jobs from counters
         group by queue_id, state having sum(count) > 0",
        params![],
        |row| {
            counts.entry(row.get("queue_id")?).or_default().insert(row.get("state")?, row.get("jobs")?);
            Ok(())
        },
    )?;
    Ok(counts)
}
