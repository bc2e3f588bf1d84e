//! What dead jobs died of: how many jobs of each queue died of each cause. Changes are summed up and written once per
//! transaction.
//!
//! On PostgreSQL several rows have a share of the number each, as those of `counters`. Only verbs that run alone take a dead
//! job away, and they subtract it from any of these rows.

pub(crate) mod recount;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::Result;
use crate::rows::dialect::Dialect;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::{JobSeq, QueueKey, WorkerSeq};
use crate::rows::sql::Sql;
use crate::rows::tx::Tx;
use crate::rows::value::{FromValue, ToValue, Value};
use crate::rows::{Row, named, params, read, wording};
use domain::job::LatestAttempt;
use domain::job::cause::{Cause, CauseId};
use domain::job::life::{Life, StateName};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

impl ToValue for CauseId {
    fn to_value(&self) -> Value<'_> {
        Value::Integer(self.to_stored())
    }
}

impl<'r> FromValue<'r> for CauseId {
    fn from_value(value: Value<'r>) -> Result<Self> {
        i64::from_value(value).map(Self::from_stored)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Causes {
    deaths: BTreeMap<(CauseId, QueueKey), Deaths>,
    /// Jobs that are no longer dead, or no longer in this queue.
    left: BTreeMap<(CauseId, QueueKey), u64>,
}

/// Jobs of a queue that died of one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deaths {
    pub(crate) cause: Cause,
    pub(crate) count: u64,
    pub(crate) first_at: Timestamp,
    pub(crate) last_at: Timestamp,
}

impl Causes {
    fn enter(&mut self, queue_id: QueueKey, cause: Cause, at: Timestamp) {
        let key = (cause.id(), queue_id);
        let deaths = self.deaths.entry(key).or_insert(Deaths { cause, count: 0, first_at: at, last_at: at });
        deaths.count += 1;
        deaths.first_at = deaths.first_at.min(at);
        deaths.last_at = deaths.last_at.max(at);
    }

    fn leave(&mut self, queue_id: QueueKey, id: CauseId) {
        *self.left.entry((id, queue_id)).or_default() += 1;
    }

    pub(crate) fn write(self, tx: &Tx<'_>) -> Result<()> {
        for ((id, queue_id), deaths) in self.deaths {
            add(tx.sql(), id, queue_id, tx.shard, &deaths)?;
        }
        for ((id, queue_id), count) in self.left {
            subtract(tx, id, queue_id, count)?;
        }
        Ok(())
    }
}

/// Keeps count of a job whose life has changed.
pub(crate) fn change(tx: &mut Tx<'_>, before: &JobRow, life: &Life, latest: &LatestAttempt) -> Result<()> {
    let is_dead = life.state.name() == StateName::Dead;
    match (before.life.state.name() == StateName::Dead, is_dead) {
        (false, true) => enter(tx, before.seq, before.queue_id, life, latest),
        (true, false) => {
            leave(tx, before)?;
            tx.execute(ASSIGN, params![before.seq, None::<i64>]).map(drop)
        }
        (false, false) | (true, true) => Ok(()),
    }
}

/// A dead job has come into a queue.
pub(crate) fn enter(
    tx: &mut Tx<'_>,
    seq: JobSeq,
    queue_id: QueueKey,
    life: &Life,
    latest: &LatestAttempt,
) -> Result<()> {
    if let (Some(cause), Some(at)) = (Cause::of(life, latest), life.state.finished_at()) {
        tx.execute(ASSIGN, params![seq, cause.id()])?;
        tx.causes.enter(queue_id, cause, at);
    }
    Ok(())
}

/// The cause that this job should have.
pub(crate) fn expected(job: &JobRow) -> Option<CauseId> {
    Cause::of(&job.life, &job.latest).map(|cause| cause.id())
}

/// A dead job is taken from its queue.
pub(crate) fn leave(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    if let Some(id) = of_job(tx, job.seq)? {
        tx.causes.leave(job.queue_id, id);
    }
    Ok(())
}

pub(crate) fn of_job(tx: &Tx<'_>, seq: JobSeq) -> Result<Option<CauseId>> {
    let id: Option<Option<CauseId>> = tx.value("select cause_id from jobs where seq = ?1", params![seq])?;
    Ok(id.flatten())
}

pub(crate) const ASSIGN: &str = "update jobs set cause_id = ?2 where seq = ?1";

/// On PostgreSQL.
pub(crate) const ADD_TO_SHARD: &str =
    "insert into causes (id, queue_id, reason, exit_code, signal, message, count, first_at, last_at, shard)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
     on conflict (id, queue_id, shard) do update
     set count = causes.count + excluded.count, last_at = greatest(causes.last_at, excluded.last_at)";

/// On SQLite.
const ADD: &str =
    "insert into causes (id, queue_id, reason, exit_code, signal, message, count, first_at, last_at)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     on conflict (id, queue_id) do update
     set count = causes.count + excluded.count, last_at = max(causes.last_at, excluded.last_at)";

fn add(sql: &dyn Sql, id: CauseId, queue_id: QueueKey, shard: i64, deaths: &Deaths) -> Result<()> {
    let Deaths { cause, count, first_at, last_at } = deaths;
    let Cause { reason, exit_code, signal, message } = cause;
    let changed = match sql.dialect() {
        Dialect::Sqlite => sql.execute(
            ADD,
            params![id, queue_id, reason, exit_code, signal, message, count, first_at, last_at],
        ),
        Dialect::Postgres => sql.execute(
            ADD_TO_SHARD,
            params![id, queue_id, reason, exit_code, signal, message, count, first_at, last_at, shard],
        ),
    };
    changed.map(drop)
}

fn subtract(tx: &Tx<'_>, id: CauseId, queue_id: QueueKey, count: u64) -> Result<()> {
    let sql = wording!(
        "update causes set count = count - ?3 where id = ?1 and queue_id = ?2",
        ("" | " and shard = (select min(shard) from causes where id = ?1 and queue_id = ?2)")
    );
    tx.execute(sql.of(tx), params![id, queue_id, count])?;
    delete_empty(tx, id, queue_id)
}

/// Deletes the rows of a cause that no dead job of the queue has.
fn delete_empty(tx: &Tx<'_>, id: CauseId, queue_id: QueueKey) -> Result<()> {
    tx.execute(
        "delete from causes where id = ?1 and queue_id = ?2
               and (select sum(count) from causes where id = ?1 and queue_id = ?2) = 0",
        params![id, queue_id],
    )
    .map(drop)
}

/// Adds the share of a worker that has stopped to that of all, on PostgreSQL.
pub(crate) fn fold(tx: &Tx<'_>, worker_seq: WorkerSeq) -> Result<()> {
    match tx.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => tx.execute(FOLD, params![worker_seq]).map(drop),
    }
}

const FOLD: &str = "with folded as (delete from causes where shard = ?1
                     returning id, queue_id, reason, exit_code, signal, message, count, first_at, last_at)
     insert into causes (id, queue_id, shard, reason, exit_code, signal, message, count, first_at, last_at)
     select id, queue_id, 0, reason, exit_code, signal, message, count, first_at, last_at from folded
     on conflict (id, queue_id, shard) do update
     set count = causes.count + excluded.count, first_at = least(causes.first_at, excluded.first_at),
         last_at = greatest(causes.last_at, excluded.last_at)";

/// The causes with the most dead jobs, those of the latest death first among equals.
pub(crate) fn largest(tx: &Tx<'_>, queue_id: Option<QueueKey>, limit: usize) -> Result<Vec<CauseId>> {
    tx.values(
        "select id from causes where queue_id = :queue_id or :queue_id is null
         group by id having sum(count) > 0 order by sum(count) desc, max(last_at) desc limit :limit",
        named! { queue_id, limit },
    )
}

/// The deaths of one cause, by queue.
pub(crate) fn of_cause(tx: &Tx<'_>, id: CauseId) -> Result<BTreeMap<QueueKey, Deaths>> {
    let mut by_queue: BTreeMap<QueueKey, Deaths> = BTreeMap::new();
    let shares = tx.all(
        "select queue_id, reason, exit_code, signal, message, count, first_at, last_at from causes where id = ?1",
        params![id],
        |row| Ok((row.get("queue_id")?, row.get::<i64>("count")?, read_deaths(row)?)),
    )?;
    let mut counts: BTreeMap<QueueKey, i64> = BTreeMap::new();
    for (queue_id, count, deaths) in shares {
        *counts.entry(queue_id).or_default() += count;
        let known = by_queue.entry(queue_id).or_insert_with(|| deaths.clone());
        known.first_at = known.first_at.min(deaths.first_at);
        known.last_at = known.last_at.max(deaths.last_at);
    }
    for (queue_id, deaths) in &mut by_queue {
        deaths.count = u64::try_from(counts[queue_id]).unwrap_or(0);
    }
    by_queue.retain(|_, deaths| deaths.count > 0);
    Ok(by_queue)
}

/// Without its count.
fn read_deaths(row: &Row<'_>) -> Result<Deaths> {
    let signal = row.get::<Option<i32>>("signal")?.and_then(Signal::from_number);
    let cause = read!(row, Cause { reason, exit_code, signal: signal, message });
    Ok(read!(row, Deaths { cause: cause, count: 0, first_at, last_at }))
}

/// The causes whose ids are in this range, up to `limit`.
pub(crate) fn within(tx: &Tx<'_>, range: &RangeInclusive<CauseId>, limit: usize) -> Result<Vec<CauseId>> {
    // By the primary key of causes.
    tx.values(
        "select id from causes where id >= ?1 and id <= ?2 group by id having sum(count) > 0 limit ?3",
        params![range.start(), range.end(), limit],
    )
}
