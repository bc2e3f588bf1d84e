//! Rebuilding derived data from the jobs. Each repair checks again before it writes, because the jobs may have changed
//! since.

use std::collections::HashSet;

use crate::rows::jobs::causes;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::dependencies::Parent;
use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::jobs::{ready, unique_keys};
use crate::rows::keys::{BatchKey, JobSeq, QueueKey};
use crate::rows::tables::batches;
use crate::rows::tx::Tx;
use crate::rows::verbs::retry::DependencySearch;
use crate::rows::{Params, named, params, wording};
use crate::{DerivedData, Result};
use domain::job::life::State;
use domain::plan::consequences::End;

/// Repairs the first of these, as many as this transaction's budget allows, and returns how many.
pub(crate) fn repair(tx: &mut Tx<'_>, derived: &[DerivedData]) -> Result<usize> {
    for (at, derived) in derived.iter().enumerate() {
        if tx.is_spent() {
            return Ok(at);
        }
        tx.spend_job();
        repair_one(tx, derived)?;
    }
    Ok(derived.len())
}

fn repair_one(tx: &mut Tx<'_>, derived: &DerivedData) -> Result<()> {
    match derived {
        DerivedData::Counter { queue_id } => recount_queue(tx, *queue_id),
        DerivedData::BatchCounter { batch_id } => recount_batch(tx, *batch_id),
        DerivedData::Cause { id, queue_id } => causes::recount::recount(tx, *id, *queue_id),
        DerivedData::JobCause { seq } => with_job(tx, *seq, reassign_cause),
        DerivedData::IndexRow { seq } => with_job(tx, *seq, reinsert),
        DerivedData::Blocked { seq } => with_job(tx, *seq, recount_waits),
        DerivedData::MissingKey { seq } => with_job(tx, *seq, take_key),
        DerivedData::Ready { queue_id, priority, due_at, seq } => delete(
            tx,
            wording!(
                "delete from ready where queue_id = :queue_id and ",
                ("priority = :priority" | "rank = -cast(:priority as bigint)"),
                " and due_at = :due_at and seq = :seq
                   and not exists (select 1 from jobs where seq = :seq and queue_id = :queue_id
                                                            and priority = :priority and due_at = :due_at)"
            )
            .of(tx),
            named! { queue_id, priority, due_at, seq },
        ),
        DerivedData::Waiting { due_at, seq } => delete(
            tx,
            "delete from waiting where due_at = :due_at and seq = :seq
                   and not exists (select 1 from jobs where seq = :seq and due_at = :due_at)",
            named! { due_at, seq },
        ),
        DerivedData::MissingUnblock { parent_seq } => with_job(tx, *parent_seq, add_pending_unblock),
        DerivedData::StrayUnblock { parent_seq } => delete(
            tx,
            "delete from pending_unblocks where parent_seq = :parent_seq
                   and not exists (select 1 from jobs where seq = :parent_seq and finished_at is not null)",
            named! { parent_seq },
        ),
        DerivedData::Link { parent_seq, child_seq } => unlink(tx, *parent_seq, *child_seq),
        DerivedData::Tag { tag, seq } => repair_tag(tx, tag, *seq),
        DerivedData::StrayKey { key } => delete(
            tx,
            "delete from unique_keys where key = :key
                   and not exists (select 1 from jobs j where j.seq = unique_keys.seq and j.unique_key = :key)",
            named! { key },
        ),
        // A person has to decide which of the two jobs may continue.
        DerivedData::SharedKey { .. } => Ok(()),
    }
}

fn delete(tx: &Tx<'_>, sql: &str, params: Params<'_>) -> Result<()> {
    tx.execute(sql, params).map(drop)
}

/// Runs `work` on a job that still exists.
fn with_job(
    tx: &mut Tx<'_>,
    seq: JobSeq,
    work: impl FnOnce(&mut Tx<'_>, &JobRow) -> Result<()>,
) -> Result<()> {
    let known = row::find(tx, seq)?;
    known.map_or(Ok(()), |job| work(tx, &job))
}

/// How often jobs entered a state cannot be recounted, so it stays.
fn recount_queue(tx: &Tx<'_>, queue_id: QueueKey) -> Result<()> {
    tx.execute("update counters set count = 0 where queue_id = :queue_id", named! { queue_id })?;
    // By index jobs_by_queue alone.
    let sql = wording!(
        "insert into counters (queue_id, state, count)
         select queue_id, state, count(*) from jobs where queue_id = :queue_id group by queue_id, state
         on conflict (queue_id, state",
        ("" | ", shard"),
        ") do update set count = excluded.count"
    );
    tx.execute(sql.of(tx), named! { queue_id })?;
    Ok(())
}

fn recount_batch(tx: &Tx<'_>, batch_id: BatchKey) -> Result<()> {
    tx.execute("delete from batch_counters where batch_id = :batch_id", named! { batch_id })?;
    // By index jobs_by_batch.
    tx.execute(
        "insert into batch_counters (batch_id, state, count)
         select batch_id, state, count(*) from jobs where batch_id = :batch_id group by batch_id, state",
        named! { batch_id },
    )?;
    if tx.exists("select 1 from batches where id = :batch_id", named! { batch_id })? {
        batches::update_completion(tx, batch_id)?;
    }
    Ok(())
}

/// Removes a job from `ready` and `waiting`, and inserts it where it belongs.
fn reinsert(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    // Each call removes it from one table.
    ready::remove(tx, job)?;
    ready::remove(tx, job)?;
    ready::insert(tx, job, job.life.due_at, job.life.wait_index(tx.now))
}

/// Deletes a link to a job that is removed, or that the child does not depend on.
fn unlink(tx: &mut Tx<'_>, parent_seq: JobSeq, child_seq: JobSeq) -> Result<()> {
    let sql = wording!(
        "delete from dependencies where parent_seq = :parent_seq and child_seq = :child_seq
                and not exists (select 1 from jobs p cross join jobs c cross join ",
        ("json_each(c.depends_on) t" | "json_array_elements_text(cast(c.depends_on as json)) t(value)"),
        " where p.seq = :parent_seq and c.seq = :child_seq and t.value = p.id)
         returning blocks"
    );
    let blocks: Option<bool> = tx.value(sql.of(tx), named! { parent_seq, child_seq })?;
    if blocks != Some(true) {
        return Ok(());
    }
    tx.execute(
        "update jobs set blocked_by = blocked_by - 1 where seq = :child_seq and blocked_by > 0",
        named! { child_seq },
    )?;
    with_job(tx, child_seq, reinsert)
}

/// Sets `blocked_by` to the number of links. If it is higher than that, links were lost: they are restored, and a
/// failed dependency counts as one that the job waited for.
fn recount_waits(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    let State::Pending { blocked_by } = job.life.state else {
        return dependencies::stop_waiting(tx, job.seq);
    };
    let mut waits = u32::try_from(dependencies::waited_for(tx, job.seq)?.len()).unwrap_or(u32::MAX);
    if waits == blocked_by {
        return Ok(());
    }
    let lost = if waits < blocked_by { restore_links(tx, job.seq)? } else { LostLinks::default() };
    waits += lost.restored + lost.failed;
    tx.execute("update jobs set blocked_by = :waits where seq = :seq", named! { seq: job.seq, waits })?;
    let job = row::by_seq(tx, job.seq)?;
    reinsert(tx, &job)?;
    // As unblocking by these dependencies would have done.
    dependencies::unblock(tx, &job, &vec![End::Failure; lost.failed as usize]).map(drop)
}

/// Dependencies of a job that lack the link of a waiting job.
#[derive(Default)]
struct LostLinks {
    /// Unfinished; the job waits for them again.
    restored: u32,
    failed: u32,
}

fn restore_links(tx: &mut Tx<'_>, child_seq: JobSeq) -> Result<LostLinks> {
    let waited_for: HashSet<JobSeq> = dependencies::waited_for(tx, child_seq)?.into_iter().collect();
    let mut lost = LostLinks::default();
    for id in dependencies::parents(tx, child_seq)? {
        tx.spend(1);
        match dependencies::look_up(tx, &id)? {
            Parent::Finished { seq, end: End::Failure } if !waited_for.contains(&seq) => lost.failed += 1,
            Parent::Unfinished { seq }
                if !waited_for.contains(&seq) && !DependencySearch::reaches(tx, seq, child_seq)? =>
            {
                dependencies::add(tx, seq, child_seq, true)?;
                lost.restored += 1;
            }
            Parent::Unknown | Parent::Finished { .. } | Parent::Unfinished { .. } => {}
        }
    }
    Ok(lost)
}

/// Records a pending unblock of all dependents of a finished job.
fn add_pending_unblock(tx: &mut Tx<'_>, parent: &JobRow) -> Result<()> {
    match End::of(parent.life.state.name()) {
        Some(end) => dependencies::save_pending_unblock(tx, parent.seq, end, JobSeq::BEFORE_FIRST),
        None => Ok(()),
    }
}

fn take_key(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    match &job.unique_key {
        Some(key) if !job.life.state.name().is_finished() && unique_keys::holder(tx, key)?.is_none() => {
            unique_keys::take(tx, key, job.seq, job.options.unique_for)
        }
        Some(_) | None => Ok(()),
    }
}

/// A dead job has a cause, and no other job has. The counts of both are repaired, too.
fn reassign_cause(tx: &mut Tx<'_>, job: &JobRow) -> Result<()> {
    let before = causes::of_job(tx, job.seq)?;
    let after = causes::expected(job);
    tx.execute(causes::ASSIGN, params![job.seq, after])?;
    for id in before.into_iter().chain(after) {
        causes::recount::recount(tx, id, job.queue_id)?;
    }
    Ok(())
}

/// The tag index has exactly the tags of the job.
fn repair_tag(tx: &Tx<'_>, tag: &str, seq: JobSeq) -> Result<()> {
    let sql = wording!(
        "select 1 from jobs j cross join ",
        ("json_each(j.tags) t" | "json_array_elements_text(cast(j.tags as json)) t(value)"),
        " where j.seq = :seq and t.value = :tag"
    );
    let has_it = tx.exists(sql.of(tx), named! { seq, tag })?;
    let repair = if has_it {
        "insert into job_tags (tag, seq) values (:tag, :seq) on conflict (tag, seq) do nothing"
    } else {
        "delete from job_tags where tag = :tag and seq = :seq"
    };
    tx.execute(repair, named! { tag, seq }).map(drop)
}
