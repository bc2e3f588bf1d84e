//! Dependencies between jobs, and unblocking dependents when a job finishes.

use super::apply;
use crate::Result;
use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, strings};
use crate::rows::keys::JobSeq;
use crate::rows::tables::settings;
use crate::rows::tx::{CancelledDependent, FinishedJob, Tx};
use crate::rows::{named, params, wording};
use domain::job::life::StateName;
use domain::plan::consequences::End;
use domain::plan::dependents;
use domain::values::name::JobId;
use sys::guards;
use sys::guards::Guard;

/// How many links one transaction deletes at most. They are adjacent rows, so each costs far less than a job.
const LINKS_PER_TRANSACTION: usize = 20_000;

/// The state of a job that another one depends on.
pub(crate) enum Parent {
    Unknown,
    Unfinished { seq: JobSeq },
    Finished { seq: JobSeq, end: End },
}

pub(crate) fn look_up(tx: &Tx<'_>, id: &JobId) -> Result<Parent> {
    find_parent(tx, "select seq, state from jobs where id = ?1", id)
}

/// As `look_up`, for a new job that will depend on it. On PostgreSQL the parent cannot finish before that is stored.
pub(crate) fn hold(tx: &Tx<'_>, id: &JobId) -> Result<Parent> {
    let sql = wording!("select seq, state from jobs where id = ?1", ("" | " for share"));
    find_parent(tx, sql.of(tx), id)
}

fn find_parent(tx: &Tx<'_>, sql: &str, id: &JobId) -> Result<Parent> {
    let found: Option<(JobSeq, StateName)> =
        tx.first(sql, params![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((seq, state)) = found else {
        return Ok(Parent::Unknown);
    };
    Ok(End::of(state).map_or(Parent::Unfinished { seq }, |end| Parent::Finished { seq, end }))
}

/// Records that a new job depends on another, and whether it waits for it. No row can exist, and a role that can only
/// enqueue may change none.
pub(crate) fn add_new(tx: &Tx<'_>, parent_seq: JobSeq, child_seq: JobSeq, blocks: bool) -> Result<()> {
    tx.execute(
        "insert into dependencies (parent_seq, child_seq, blocks) values (?1, ?2, ?3) on conflict do nothing",
        params![parent_seq, child_seq, blocks],
    )?;
    Ok(())
}

/// Records that one job depends on another, and whether it waits for it.
pub(crate) fn add(tx: &Tx<'_>, parent_seq: JobSeq, child_seq: JobSeq, blocks: bool) -> Result<()> {
    // The row may exist if the child is being retried.
    tx.execute(
        "insert into dependencies (parent_seq, child_seq, blocks) values (:parent_seq, :child_seq, :blocks)
         on conflict (parent_seq, child_seq) do update set blocks = excluded.blocks",
        named! { parent_seq, child_seq, blocks },
    )?;
    Ok(())
}

/// How many jobs wait for this one, counted up to a limit.
pub(crate) fn count_waiting(tx: &Tx<'_>, parent_seq: JobSeq, limit: u64) -> Result<u64> {
    Ok(waiting_after(tx, parent_seq, JobSeq::BEFORE_FIRST, usize::try_from(limit).unwrap_or(usize::MAX))?
        .len() as u64)
}

/// Whether any job waits for this one.
pub(crate) fn is_waited_for(tx: &Tx<'_>, parent_seq: JobSeq) -> Result<bool> {
    Ok(count_waiting(tx, parent_seq, 1)? > 0)
}

/// A finished job waits for no other.
pub(crate) fn stop_waiting(tx: &mut Tx<'_>, child_seq: JobSeq) -> Result<()> {
    let parents = existing_parents(tx, child_seq)?;
    // The parent whose end caused this, if any, is already counted.
    tx.spend(parents.len().saturating_sub(1));
    for parent_seq in parents {
        mark_met(tx, parent_seq, child_seq)?;
    }
    Ok(())
}

/// By the primary key of `dependencies`.
pub(crate) const HAS_DEPENDENTS: &str = "select 1 from dependencies where parent_seq = ?1 limit 1";

/// Deletes the links of a job to its dependents, then those to its dependencies. `false` if there are more than one
/// transaction should delete: the rest is left to a later one.
pub(crate) fn delete_links(tx: &mut Tx<'_>, seq: JobSeq) -> Result<bool> {
    let limit = if guards::is_off(Guard::Portions) { usize::MAX } else { LINKS_PER_TRANSACTION };
    if tx.exists(HAS_DEPENDENTS, params![seq])? {
        let deleted = tx.execute(
            "delete from dependencies
             where parent_seq = :seq and child_seq in (select child_seq from dependencies
                                                       where parent_seq = :seq order by child_seq limit :limit)",
            named! { seq, limit },
        )?;
        if deleted == limit {
            return Ok(false);
        }
    }
    let parents = existing_parents(tx, seq)?;
    tx.spend(parents.len());
    for parent_seq in parents {
        tx.execute(
            "delete from dependencies where parent_seq = :parent_seq and child_seq = :seq",
            named! { parent_seq, seq },
        )?;
    }
    Ok(true)
}

/// Whether the link between two jobs is stored.
pub(crate) fn is_linked(tx: &Tx<'_>, parent_seq: JobSeq, child_seq: JobSeq) -> Result<bool> {
    tx.exists(
        "select 1 from dependencies where parent_seq = :parent_seq and child_seq = :child_seq",
        named! { parent_seq, child_seq },
    )
}

/// The ids that a job depends on, as JSON.
pub(crate) const PARENTS: &str = "select depends_on from jobs where seq = ?1";

/// The ids that a job depends on.
pub(crate) fn parents(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<JobId>> {
    let names = tx.one(PARENTS, params![seq], |row| strings(row.get(0)?))?;
    names.iter().map(|id| id.parse().map_err(|error| row::malformed("depends_on", error))).collect()
}

/// The dependencies that still exist.
fn existing_parents(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<JobSeq>> {
    let mut existing = Vec::new();
    for id in parents(tx, seq)? {
        existing.extend(tx.value::<JobSeq>("select seq from jobs where id = :id", named! { id })?);
    }
    Ok(existing)
}

/// The dependencies that a job waits for.
pub(crate) fn waited_for(tx: &Tx<'_>, child_seq: JobSeq) -> Result<Vec<JobSeq>> {
    let mut waited_for = Vec::new();
    for parent_seq in existing_parents(tx, child_seq)? {
        let blocks = tx.exists(
            "select 1 from dependencies
             where parent_seq = :parent_seq and child_seq = :child_seq and blocks = 1",
            named! { parent_seq, child_seq },
        )?;
        if blocks {
            waited_for.push(parent_seq);
        }
    }
    Ok(waited_for)
}

/// Adds the missing links of a job to its existing dependencies, as ones that it does not wait for.
pub(crate) fn add_missing_links(tx: &Tx<'_>, child_seq: JobSeq) -> Result<()> {
    for parent_seq in existing_parents(tx, child_seq)? {
        tx.execute(
            "insert into dependencies (parent_seq, child_seq, blocks) values (:parent_seq, :child_seq, 0)
             on conflict (parent_seq, child_seq) do nothing",
            named! { parent_seq, child_seq },
        )?;
    }
    Ok(())
}

/// Unblocks the dependents of the jobs that finished in this transaction, as many as its budget allows. The rest is
/// recorded as pending and done by later exchanges. A dependent that is cancelled here is finished too.
pub(crate) fn unblock_dependents(tx: &mut Tx<'_>) -> Result<()> {
    while let Some(FinishedJob { seq, end }) = tx.finished.pop() {
        unblock_children(tx, seq, end, JobSeq::BEFORE_FIRST)?;
    }
    Ok(())
}

/// Continues the pending unblocks of earlier transactions.
pub(crate) fn resume_pending_unblocks(tx: &mut Tx<'_>) -> Result<()> {
    while !tx.effects.has_pending_unblocks {
        let pending: Option<(JobSeq, bool, JobSeq)> = tx.first(
            "select parent_seq, failed, after_seq from pending_unblocks order by parent_seq limit 1",
            params![],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let Some((parent_seq, failed, after_seq)) = pending else {
            return Ok(());
        };
        let end = if failed { End::Failure } else { End::Success };
        tx.execute("delete from pending_unblocks where parent_seq = :parent_seq", named! { parent_seq })?;
        unblock_children(tx, parent_seq, end, after_seq)?;
        unblock_dependents(tx)?;
    }
    Ok(())
}

/// Unblocks the children after `after_seq`, in the order of enqueuing.
fn unblock_children(tx: &mut Tx<'_>, parent_seq: JobSeq, end: End, after_seq: JobSeq) -> Result<()> {
    // With no budget left, one child is enough to know whether there are any.
    let share = tx.jobs_left().max(1);
    let children = waiting_after(tx, parent_seq, after_seq, share)?;
    let mut last = after_seq;
    for child_seq in &children {
        // Cancelling a child costs as much as it has parents.
        if tx.is_spent() {
            return save_pending_unblock(tx, parent_seq, end, last);
        }
        tx.spend_job();
        mark_met(tx, parent_seq, *child_seq)?;
        let child = row::by_seq(tx, *child_seq)?;
        if unblock(tx, &child, &[end])? == Some(StateName::Cancelled) {
            let cancelled = CancelledDependent { seq: child.seq, id: child.id, parent_seq };
            tx.effects.dependents.push(cancelled);
        }
        last = *child_seq;
    }
    if children.len() >= share {
        save_pending_unblock(tx, parent_seq, end, last)?;
    }
    Ok(())
}

/// Whether some dependents of a finished job are not yet unblocked.
pub(crate) fn has_pending_unblock(tx: &Tx<'_>, parent_seq: JobSeq) -> Result<bool> {
    tx.exists("select 1 from pending_unblocks where parent_seq = :parent_seq", named! { parent_seq })
}

/// By the primary key of `dependencies`.
pub(crate) const WAITING_AFTER: &str = "select child_seq from dependencies
     where parent_seq = ?1 and child_seq > ?2 and blocks = 1 order by child_seq limit ?3";

/// The jobs that wait for a job, in the order of enqueuing, after one of them.
fn waiting_after(tx: &Tx<'_>, parent_seq: JobSeq, after_seq: JobSeq, limit: usize) -> Result<Vec<JobSeq>> {
    tx.values(WAITING_AFTER, params![parent_seq, after_seq, limit])
}

/// The child no longer waits for this parent.
fn mark_met(tx: &Tx<'_>, parent_seq: JobSeq, child_seq: JobSeq) -> Result<()> {
    tx.execute(
        "update dependencies set blocks = 0 where parent_seq = ?1 and child_seq = ?2",
        params![parent_seq, child_seq],
    )?;
    Ok(())
}

/// Leaves the remaining children to a later transaction, and wakes a worker for it.
pub(crate) fn save_pending_unblock(
    tx: &mut Tx<'_>,
    parent_seq: JobSeq,
    end: End,
    after_seq: JobSeq,
) -> Result<()> {
    tx.execute(
        "insert into pending_unblocks (parent_seq, failed, after_seq) values (:parent_seq, :failed, :after_seq)
         on conflict (parent_seq) do update set failed = excluded.failed, after_seq = excluded.after_seq",
        named! { parent_seq, failed: end.is_failure(), after_seq },
    )?;
    tx.note_pending_unblocks();
    Ok(())
}

/// Applies the ends of some dependencies to a waiting job. The row, which is long if the job
/// depends on many, is written only once. Returns the new state, if the job changed.
pub(crate) fn unblock(tx: &mut Tx<'_>, child: &JobRow, ends: &[End]) -> Result<Option<StateName>> {
    let policy = settings::policy(tx, child)?;
    let on_failure = child.options.on_dependency_failure();
    let Some(unblocked) = dependents::unblock(&child.life, on_failure, ends, &policy, tx.now) else {
        return Ok(None);
    };
    let is_applied = apply(tx, child, &unblocked, &child.latest)?;
    Ok(is_applied.then(|| unblocked.life.state.name()))
}
