//! Where jobs wait for their next attempt: `ready` in claim order, `waiting` in the order of due times.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use crate::StoreError;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use domain::job::life::{Life, WaitIndex};
use domain::values::timestamp::Timestamp;

/// How many due jobs one transaction makes ready at most.
const PROMOTED_PER_TRANSACTION: usize = 10_000;

/// A waiting job that is due within this time wakes workers; they find later ones in time by themselves, because they
/// check once a second.
const WAKE_WITHIN: Duration = Duration::from_secs(1);

/// Inserts a job where its new life belongs.
pub(crate) fn insert(tx: &Tx<'_>, job: &JobRow, life: &Life) -> Result<(), StoreError> {
    match life.wait_index(tx.now) {
        WaitIndex::Ready => insert_ready(tx, job.queue_id, job.priority, life.due_at, job.seq),
        WaitIndex::Waiting => insert_waiting(tx, life.due_at, job.seq),
        WaitIndex::None => Ok(()),
    }
}

pub(crate) fn insert_ready(
    tx: &Tx<'_>,
    queue_id: i64,
    priority: i32,
    due_at: Timestamp,
    seq: i64,
) -> Result<(), StoreError> {
    tx.prepare("insert into ready (queue_id, priority, due_at, seq) values (?1, ?2, ?3, ?4)")?
        .execute(params![queue_id, priority, due_at.as_millis(), seq])?;
    tx.note_ready();
    Ok(())
}

pub(crate) fn insert_waiting(tx: &Tx<'_>, due_at: Timestamp, seq: i64) -> Result<(), StoreError> {
    tx.prepare("insert into waiting (due_at, seq) values (?1, ?2)")?
        .execute(params![due_at.as_millis(), seq])?;
    if due_at.since(tx.now) < WAKE_WITHIN {
        tx.note_ready();
    }
    Ok(())
}

/// Removes a job from where it waits. A due job may still be in `waiting`.
pub(crate) fn remove(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    let due_at = job.life.due_at.as_millis();
    let ready = tx
        .prepare("delete from ready where queue_id = ?1 and priority = ?2 and due_at = ?3 and seq = ?4")?
        .execute(params![job.queue_id, job.priority, due_at, job.seq])?;
    if ready == 0 {
        tx.prepare("delete from waiting where due_at = ?1 and seq = ?2")?
            .execute(params![due_at, job.seq])?;
    }
    Ok(())
}

/// Moves a job that turned out not to be due from `ready` to `waiting`.
pub(crate) fn postpone(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    remove(tx, job)?;
    insert_waiting(tx, job.life.due_at, job.seq)
}

/// Makes due jobs ready; `false` if there were more than one transaction should move.
pub(crate) fn promote(tx: &Tx<'_>) -> Result<bool, StoreError> {
    let due = due_jobs(tx)?;
    for job in &due {
        tx.prepare("delete from waiting where due_at = ?1 and seq = ?2")?
            .execute(params![job.due_at.as_millis(), job.seq])?;
        insert_ready(tx, job.queue_id, job.priority, job.due_at, job.seq)?;
    }
    Ok(due.len() < PROMOTED_PER_TRANSACTION)
}

struct DueJob {
    due_at: Timestamp,
    seq: i64,
    queue_id: i64,
    priority: i32,
}

fn due_jobs(tx: &Tx<'_>) -> Result<Vec<DueJob>, StoreError> {
    let mut select = tx.prepare(
        "select w.due_at, w.seq, j.queue_id, j.priority
         from waiting w cross join jobs j on j.seq = w.seq
         where w.due_at <= ?1
         order by w.due_at, w.seq
         limit ?2",
    )?;
    let rows = select.query_map(params![tx.now.as_millis(), PROMOTED_PER_TRANSACTION], |row| {
        Ok(DueJob {
            due_at: Timestamp::from_millis(row.get(0)?),
            seq: row.get(1)?,
            queue_id: row.get(2)?,
            priority: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// When the next waiting job becomes due.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
    let mut select = tx.prepare("select due_at from waiting order by due_at, seq limit 1")?;
    let next = select.query_row([], |row| row.get(0)).optional()?;
    Ok(next.map(Timestamp::from_millis))
}
