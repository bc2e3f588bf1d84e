//! Where jobs wait for their next attempt: `ready` in claim order, `waiting` in the order of due times.
//!
//! PostgreSQL compares rows in one direction only, so its `ready` has a `rank`, the negative priority.

use std::time::Duration;

use crate::Result;
use crate::rows::dialect::Wording;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::{JobSeq, QueueKey};
use crate::rows::tx::Tx;
use crate::rows::{params, wording};
use domain::job::life::WaitIndex;
use domain::values::timestamp::Timestamp;

/// How many due jobs one transaction makes ready at most.
pub(crate) const PROMOTED_PER_TRANSACTION: usize = 10_000;

/// A waiting job that is due within this time wakes workers; they find later ones in time by themselves, because they
/// check once a second.
const WAKE_WITHIN: Duration = Duration::from_secs(1);
/// The same on a server, where workers that hear of changes look once a heartbeat.
const WAKE_WITHIN_ON_SERVER: Duration = Duration::from_secs(60);

/// How many priorities of a queue are searched for its oldest job.
const MAX_PRIORITIES: usize = 64;
/// How many due jobs that no worker has made ready yet are searched for the oldest of each queue.
const MAX_OVERDUE: usize = 1_000;

/// Inserts a job that is due then.
pub(crate) fn insert(tx: &mut Tx<'_>, job: &JobRow, due_at: Timestamp, index: WaitIndex) -> Result<()> {
    match index {
        WaitIndex::Ready => insert_ready(tx, job.queue_id, job.priority, due_at, job.seq),
        WaitIndex::Waiting => insert_waiting(tx, due_at, job.seq),
        WaitIndex::None => Ok(()),
    }
}

/// Nothing ready in a queue is before its floor.
pub(crate) const INSERT: Wording = wording!(
    ("insert into ready (queue_id, priority, due_at, seq) values (?1, ?2, ?3, ?4)"
        | "with lowered as (update floors set rank = -cast(?2 as bigint), due_at = ?3, seq = ?4
                        where queue_id = ?1 and (rank, due_at, seq) > (-cast(?2 as bigint), ?3, ?4))
       insert into ready (queue_id, rank, due_at, seq) values (?1, -cast(?2 as bigint), ?3, ?4)")
);

pub(crate) fn insert_ready(
    tx: &mut Tx<'_>,
    queue_id: QueueKey,
    priority: i32,
    due_at: Timestamp,
    seq: JobSeq,
) -> Result<()> {
    tx.execute(INSERT.of(tx), params![queue_id, priority, due_at, seq])?;
    tx.note_ready();
    Ok(())
}

pub(crate) const INSERT_WAITING: &str = "insert into waiting (due_at, seq) values (?1, ?2)";

pub(crate) fn insert_waiting(tx: &mut Tx<'_>, due_at: Timestamp, seq: JobSeq) -> Result<()> {
    tx.execute(INSERT_WAITING, params![due_at, seq])?;
    if due_at.since(tx.now) < tx.dialect().pick(WAKE_WITHIN, WAKE_WITHIN_ON_SERVER) {
        tx.note_ready();
    }
    Ok(())
}

pub(crate) const REMOVE: Wording = wording!(
    "delete from ready where queue_id = ?1 and ",
    ("priority = ?2" | "rank = -cast(?2 as bigint)"),
    " and due_at = ?3 and seq = ?4"
);

/// Removes a job from where it waits. A due job may still be in `waiting`.
pub(crate) fn remove(tx: &Tx<'_>, job: &JobRow) -> Result<()> {
    let due_at = job.life.due_at;
    let ready = tx.execute(REMOVE.of(tx), params![job.queue_id, job.priority, due_at, job.seq])?;
    if ready == 0 { remove_waiting(tx, due_at, job.seq) } else { Ok(()) }
}

fn remove_waiting(tx: &Tx<'_>, due_at: Timestamp, seq: JobSeq) -> Result<()> {
    tx.execute("delete from waiting where due_at = ?1 and seq = ?2", params![due_at, seq])?;
    Ok(())
}

/// Moves a job that turned out not to be due from `ready` to `waiting`.
pub(crate) fn postpone(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    remove(tx, job)?;
    insert_waiting(tx, job.life.due_at, job.seq)
}

/// Makes due jobs ready; `false` if there were more than one transaction should move.
pub(crate) fn promote(tx: &mut Tx<'_>) -> Result<bool> {
    let due = due_jobs(tx)?;
    for job in &due {
        remove_waiting(tx, job.due_at, job.seq)?;
        insert_ready(tx, job.queue_id, job.priority, job.due_at, job.seq)?;
    }
    Ok(due.len() < PROMOTED_PER_TRANSACTION)
}

struct DueJob {
    due_at: Timestamp,
    seq: JobSeq,
    queue_id: QueueKey,
    priority: i32,
}

fn due_jobs(tx: &Tx<'_>) -> Result<Vec<DueJob>> {
    tx.all(
        "select w.due_at, w.seq, j.queue_id, j.priority
         from waiting w cross join jobs j
         where j.seq = w.seq and w.due_at <= ?1
         order by w.due_at, w.seq
         limit ?2",
        params![tx.now, PROMOTED_PER_TRANSACTION],
        |row| {
            Ok(DueJob { due_at: row.get(0)?, seq: row.get(1)?, queue_id: row.get(2)?, priority: row.get(3)? })
        },
    )
}

/// When the next waiting job becomes due.
pub(crate) fn next_due(tx: &Tx<'_>) -> Result<Option<Timestamp>> {
    tx.value("select due_at from waiting order by due_at, seq limit 1", params![])
}

/// The queues with ready jobs, by a skip scan of the primary key of `ready`.
pub(crate) fn queues_with_ready(tx: &Tx<'_>) -> Result<Vec<QueueKey>> {
    let next = "select queue_id from ready where queue_id > ?1 order by queue_id limit 1";
    let mut ids = Vec::new();
    let mut last = QueueKey(i64::MIN);
    while let Some(id) = tx.value(next, params![last])? {
        ids.push(id);
        last = id;
    }
    Ok(ids)
}

/// When the job of a queue became due that has been ready for the longest time. Jumps from priority to priority.
pub(crate) fn oldest(tx: &Tx<'_>, queue_id: QueueKey) -> Result<Option<Timestamp>> {
    let mut oldest: Option<Timestamp> = None;
    let mut below = i64::MAX;
    // By the primary key of `ready`.
    let sql = wording!(
        ("select priority, due_at from ready where queue_id = ?1 and priority < ?2
          order by priority desc, due_at, seq limit 1"
            | "select -rank, due_at from ready where queue_id = ?1 and rank > -cast(?2 as bigint)
               order by rank, due_at, seq limit 1")
    );
    for _ in 0..MAX_PRIORITIES {
        let first: Option<(i64, Timestamp)> =
            tx.first(sql.of(tx), params![queue_id, below], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((priority, due_at)) = first else {
            break;
        };
        oldest = Some(oldest.map_or(due_at, |oldest| oldest.min(due_at)));
        below = priority;
    }
    Ok(oldest)
}

/// Due jobs that no worker has made ready yet, by queue, the oldest first.
pub(crate) fn overdue(tx: &Tx<'_>) -> Result<Vec<(QueueKey, Timestamp)>> {
    // By the primary key of `waiting`.
    tx.all(
        "select j.queue_id, w.due_at from waiting w join jobs j on j.seq = w.seq
         where w.due_at <= ?1 order by w.due_at, w.seq limit ?2",
        params![tx.now, MAX_OVERDUE],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}
