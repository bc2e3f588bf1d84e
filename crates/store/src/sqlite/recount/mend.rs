//! Making anew what follows from the jobs. Each of these looks again before it writes: the jobs may have changed since.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, params};

use crate::sqlite::jobs::dependencies;
use crate::sqlite::jobs::dependencies::Parent;
use crate::sqlite::jobs::is_failure;
use crate::sqlite::jobs::{ready, unique_keys};
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::batches;
use crate::sqlite::verbs::retry::Followed;
use crate::{Derived, StoreError};
use domain::job::life::{Place, State};

/// Mends the first of these, as many as this transaction's portion holds; gives how many these were.
pub(in crate::sqlite) fn mend(tx: &Tx<'_>, derived: &[Derived]) -> Result<usize, StoreError> {
    for (at, derived) in derived.iter().enumerate() {
        if tx.is_spent() {
            return Ok(at);
        }
        tx.spend_job();
        mend_one(tx, derived)?;
    }
    Ok(derived.len())
}

fn mend_one(tx: &Tx<'_>, derived: &Derived) -> Result<(), StoreError> {
    match derived {
        Derived::Counter { queue_id } => recount_queue(tx, *queue_id),
        Derived::BatchCounter { batch_id } => recount_batch(tx, *batch_id),
        Derived::Place { seq } => with(tx, *seq, put_in_line),
        Derived::Blocked { seq } => with(tx, *seq, wait_anew),
        Derived::Held { seq } => with(tx, *seq, hold_key),
        Derived::Ready { queue_id, priority, due_at, seq } => delete(
            tx,
            "delete from ready where queue_id = ?1 and priority = ?2 and due_at = ?3 and seq = ?4
                   and not exists (select 1 from jobs where seq = ?4 and queue_id = ?1 and priority = ?2 and due_at = ?3)",
            params![queue_id, priority, due_at, seq],
        ),
        Derived::Waiting { due_at, seq } => delete(
            tx,
            "delete from waiting where due_at = ?1 and seq = ?2
                   and not exists (select 1 from jobs where seq = ?2 and due_at = ?1)",
            params![due_at, seq],
        ),
        Derived::End { parent_seq } => with(tx, *parent_seq, tell_again),
        Derived::Note { parent_seq } => delete(
            tx,
            "delete from releases where parent_seq = ?1
                   and not exists (select 1 from jobs where seq = ?1 and finished_at is not null)",
            params![parent_seq],
        ),
        Derived::Link { parent_seq, child_seq } => unlink(tx, *parent_seq, *child_seq),
        Derived::Tag { tag, seq } => mend_tag(tx, tag, *seq),
        Derived::Key { key } => delete(
            tx,
            "delete from unique_keys where key = ?1
                   and not exists (select 1 from jobs j where j.seq = unique_keys.seq and j.unique_key = ?1)",
            params![key],
        ),
        // Which of the two is to go on is for a person to say.
        Derived::Shared { .. } => Ok(()),
    }
}

fn delete(tx: &Tx<'_>, sql: &str, params: impl rusqlite::Params) -> Result<(), StoreError> {
    tx.prepare(sql)?.execute(params)?;
    Ok(())
}

/// Does something to a job that is still there.
fn with(
    tx: &Tx<'_>,
    seq: i64,
    work: impl FnOnce(&Tx<'_>, &JobRow) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let known = row::by_number(tx, u64::try_from(seq).unwrap_or(0))?;
    known.map_or(Ok(()), |job| work(tx, &job))
}

fn recount_queue(tx: &Tx<'_>, queue_id: i64) -> Result<(), StoreError> {
    tx.prepare("delete from counters where queue_id = ?1")?.execute([queue_id])?;
    // By index jobs_by_queue alone.
    tx.prepare(
        "insert into counters (queue_id, state, count)
         select queue_id, state, count(*) from jobs where queue_id = ?1 group by state",
    )?
    .execute([queue_id])?;
    Ok(())
}

fn recount_batch(tx: &Tx<'_>, batch_id: i64) -> Result<(), StoreError> {
    tx.prepare("delete from batch_counters where batch_id = ?1")?.execute([batch_id])?;
    // By index jobs_by_batch.
    tx.prepare(
        "insert into batch_counters (batch_id, state, count)
         select batch_id, state, count(*) from jobs where batch_id = ?1 group by state",
    )?
    .execute([batch_id])?;
    if tx.prepare("select 1 from batches where id = ?1")?.exists([batch_id])? {
        batches::look_again(tx, batch_id)?;
    }
    Ok(())
}

/// Takes a job from every line in which it stands with its rank, and puts it where it belongs.
fn put_in_line(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    // A job is taken from one line at a time.
    ready::take_away(tx, job)?;
    ready::take_away(tx, job)?;
    if job.life.place(tx.now) == Place::Nowhere {
        return Ok(());
    }
    ready::put(tx, job, &job.life)
}

/// Deletes the link of a job that is gone, or that the other does not depend on.
fn unlink(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<(), StoreError> {
    let blocks: Option<bool> = tx
        .prepare(
            "delete from dependencies where parent_seq = ?1 and child_seq = ?2
                    and not exists (select 1 from jobs p cross join jobs c cross join json_each(c.depends_on) t
                                    where p.seq = ?1 and c.seq = ?2 and t.value = p.id)
             returning blocks",
        )?
        .query_row([parent_seq, child_seq], |row| row.get(0))
        .optional()?;
    if blocks != Some(true) {
        return Ok(());
    }
    tx.prepare("update jobs set blocked_by = blocked_by - 1 where seq = ?1 and blocked_by > 0")?
        .execute([child_seq])?;
    with(tx, child_seq, put_in_line)
}

/// Lets a job wait for as many others as its links say. Where it is blocked by more, links were lost: they are taken up
/// again, and a dependency that failed counts as one that the job waited for.
fn wait_anew(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    let State::Pending { blocked_by } = job.life.state else {
        return dependencies::stop_waiting(tx, job.seq);
    };
    let mut waits = u32::try_from(dependencies::waited_for(tx, job.seq)?.len()).unwrap_or(u32::MAX);
    if waits == blocked_by {
        return Ok(());
    }
    let lost = if waits < blocked_by { take_up_lost(tx, job.seq)? } else { Lost::default() };
    waits += lost.taken_up + lost.failed;
    tx.prepare("update jobs set blocked_by = ?2 where seq = ?1")?.execute(params![job.seq, waits])?;
    let job = row::by_seq(tx, job.seq)?;
    put_in_line(tx, &job)?;
    // As a release of the dependents of these would do it.
    dependencies::tell(tx, &job, &vec![true; lost.failed as usize]).map(drop)
}

/// Dependencies of a job without a link that says that it waits for them.
#[derive(Default)]
struct Lost {
    /// Unfinished, and the job waits for them again.
    taken_up: u32,
    failed: u32,
}

fn take_up_lost(tx: &Tx<'_>, child_seq: i64) -> Result<Lost, StoreError> {
    let waited_for: HashSet<i64> = dependencies::waited_for(tx, child_seq)?.into_iter().collect();
    let mut lost = Lost::default();
    for id in dependencies::parents(tx, child_seq)? {
        tx.spend(1);
        match dependencies::look_up(tx, &id)? {
            Parent::Finished { seq, failed: true } if !waited_for.contains(&seq) => lost.failed += 1,
            Parent::Unfinished { seq }
                if !waited_for.contains(&seq) && !Followed::reaches(tx, seq, child_seq)? =>
            {
                dependencies::add(tx, seq, child_seq, true)?;
                lost.taken_up += 1;
            }
            Parent::Unknown | Parent::Finished { .. } | Parent::Unfinished { .. } => {}
        }
    }
    Ok(lost)
}

/// Notes that those who wait for a finished job are to be told, from the first on.
fn tell_again(tx: &Tx<'_>, parent: &JobRow) -> Result<(), StoreError> {
    let state = parent.life.state.name();
    if !state.is_finished() {
        return Ok(());
    }
    tx.prepare("insert or replace into releases (parent_seq, failed, after_seq) values (?1, ?2, 0)")?
        .execute(params![parent.seq, is_failure(state)])?;
    tx.note_more_to_tell();
    Ok(())
}

fn hold_key(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    match &job.unique_key {
        Some(key) if !job.life.state.name().is_finished() && unique_keys::holder(tx, key)?.is_none() => {
            unique_keys::take(tx, key, job.seq, job.options.unique_for)
        }
        Some(_) | None => Ok(()),
    }
}

/// A job is found by the tags that it has, and by no other.
fn mend_tag(tx: &Tx<'_>, tag: &str, seq: i64) -> Result<(), StoreError> {
    let has_it = tx
        .prepare("select 1 from jobs j cross join json_each(j.tags) t where j.seq = ?1 and t.value = ?2")?
        .exists(params![seq, tag])?;
    if has_it {
        tx.prepare("insert or ignore into job_tags (tag, seq) values (?1, ?2)")?
            .execute(params![tag, seq])?;
    } else {
        tx.prepare("delete from job_tags where tag = ?1 and seq = ?2")?.execute(params![tag, seq])?;
    }
    Ok(())
}
