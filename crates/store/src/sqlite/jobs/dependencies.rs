//! Dependencies between jobs, and unblocking dependents when a job finishes.

use rusqlite::{OptionalExtension, params};

use super::{apply, is_failure};
use crate::StoreError;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, strings};
use crate::sqlite::session::tx::{CancelledDependent, FinishedJob, Tx};
use crate::sqlite::tables::settings;
use domain::job::OnDependencyFailure;
use domain::job::life::{Event, StateName, Transition, transition};
use domain::values::name::JobId;
use sys::guards;
use sys::guards::Guard;

/// How many links one transaction deletes at most. They are adjacent rows, so each costs far less than a job.
const LINKS_PER_TRANSACTION: i64 = 20_000;

/// The state of a job that another one depends on.
pub(crate) enum Parent {
    Unknown,
    Unfinished { seq: i64 },
    Finished { seq: i64, failed: bool },
}

pub(crate) fn look_up(tx: &Tx<'_>, id: &JobId) -> Result<Parent, StoreError> {
    let mut select = tx.prepare("select seq, state from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((seq, state)) = found else {
        return Ok(Parent::Unknown);
    };
    let state = StateName::from_name(&state).ok_or_else(|| row::malformed("state", &state))?;
    Ok(if state.is_finished() {
        Parent::Finished { seq, failed: is_failure(state) }
    } else {
        Parent::Unfinished { seq }
    })
}

/// Records that one job depends on another, and whether it waits for it.
pub(crate) fn add(tx: &Tx<'_>, parent_seq: i64, child_seq: i64, blocks: bool) -> Result<(), StoreError> {
    // The row may exist if the child is being retried.
    tx.prepare(
        "insert into dependencies (parent_seq, child_seq, blocks) values (?1, ?2, ?3)
         on conflict (parent_seq, child_seq) do update set blocks = ?3",
    )?
    .execute(params![parent_seq, child_seq, blocks])?;
    Ok(())
}

/// How many jobs wait for this one, counted up to a limit.
pub(crate) fn count_waiting(tx: &Tx<'_>, parent_seq: i64, limit: u64) -> Result<u64, StoreError> {
    Ok(waiting_after(tx, parent_seq, 0, usize::try_from(limit).unwrap_or(usize::MAX))?.len() as u64)
}

/// Whether any job waits for this one.
pub(crate) fn is_waited_for(tx: &Tx<'_>, parent_seq: i64) -> Result<bool, StoreError> {
    Ok(count_waiting(tx, parent_seq, 1)? > 0)
}

/// A finished job waits for no other.
pub(crate) fn stop_waiting(tx: &Tx<'_>, child_seq: i64) -> Result<(), StoreError> {
    let parents = existing_parents(tx, child_seq)?;
    // The parent whose end caused this, if any, is already counted.
    tx.spend(parents.len().saturating_sub(1));
    for parent_seq in parents {
        mark_met(tx, parent_seq, child_seq)?;
    }
    Ok(())
}

/// Deletes the links of a job to its dependents, then those to its dependencies. `false` if there are more than one
/// transaction should delete: the rest is left to a later one.
pub(crate) fn delete_links(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    let mut delete = tx.prepare(
        "delete from dependencies
         where parent_seq = ?1 and child_seq in (select child_seq from dependencies
                                                 where parent_seq = ?1 order by child_seq limit ?2)",
    )?;
    let limit = if guards::is_off(Guard::Portions) { i64::MAX } else { LINKS_PER_TRANSACTION };
    if i64::try_from(delete.execute([seq, limit])?).unwrap_or(i64::MAX) == limit {
        return Ok(false);
    }
    let parents = existing_parents(tx, seq)?;
    tx.spend(parents.len());
    for parent_seq in parents {
        tx.prepare("delete from dependencies where parent_seq = ?1 and child_seq = ?2")?
            .execute([parent_seq, seq])?;
    }
    Ok(true)
}

/// Whether the link between two jobs is stored.
pub(crate) fn is_linked(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select 1 from dependencies where parent_seq = ?1 and child_seq = ?2")?;
    Ok(select.exists([parent_seq, child_seq])?)
}

/// The ids that a job depends on.
pub(crate) fn parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<JobId>, StoreError> {
    let json: Option<String> =
        tx.prepare("select depends_on from jobs where seq = ?1")?.query_row([seq], |row| row.get(0))?;
    let names = strings(json.as_deref())?;
    names.iter().map(|id| id.parse().map_err(|error| row::malformed("depends_on", error))).collect()
}

/// The dependencies that still exist.
fn existing_parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut existing = Vec::new();
    for id in parents(tx, seq)? {
        let mut select = tx.prepare("select seq from jobs where id = ?1")?;
        existing.extend(select.query_row([id.as_str()], |row| row.get::<_, i64>(0)).optional()?);
    }
    Ok(existing)
}

/// The dependencies that a job waits for.
pub(crate) fn waited_for(tx: &Tx<'_>, child_seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut select =
        tx.prepare("select 1 from dependencies where parent_seq = ?1 and child_seq = ?2 and blocks = 1")?;
    let mut waited_for = Vec::new();
    for parent_seq in existing_parents(tx, child_seq)? {
        if select.exists([parent_seq, child_seq])? {
            waited_for.push(parent_seq);
        }
    }
    Ok(waited_for)
}

/// Adds the missing links of a job to its existing dependencies, as ones that it does not wait for.
pub(crate) fn add_missing_links(tx: &Tx<'_>, child_seq: i64) -> Result<(), StoreError> {
    for parent_seq in existing_parents(tx, child_seq)? {
        tx.prepare(
            "insert into dependencies (parent_seq, child_seq, blocks) values (?1, ?2, 0)
             on conflict (parent_seq, child_seq) do nothing",
        )?
        .execute([parent_seq, child_seq])?;
    }
    Ok(())
}

/// Unblocks the dependents of the jobs that finished in this transaction, as many as its budget allows. The rest is
/// recorded as pending and done by later exchanges. A dependent that is cancelled here is finished too.
pub(crate) fn unblock_dependents(tx: &Tx<'_>) -> Result<(), StoreError> {
    while let Some(FinishedJob { seq, failed }) = tx.next_finished() {
        unblock_children(tx, seq, failed, 0)?;
    }
    Ok(())
}

/// Continues the pending unblocks of earlier transactions.
pub(crate) fn resume_pending_unblocks(tx: &Tx<'_>) -> Result<(), StoreError> {
    while !tx.has_pending_unblocks() {
        let pending = tx
            .prepare(
                "select parent_seq, failed, after_seq from pending_unblocks order by parent_seq limit 1",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((parent_seq, failed, after_seq)) = pending else {
            return Ok(());
        };
        tx.prepare("delete from pending_unblocks where parent_seq = ?1")?.execute([parent_seq])?;
        unblock_children(tx, parent_seq, failed, after_seq)?;
        unblock_dependents(tx)?;
    }
    Ok(())
}

/// Unblocks the children after `after_seq`, in the order of enqueuing.
fn unblock_children(tx: &Tx<'_>, parent_seq: i64, failed: bool, after_seq: i64) -> Result<(), StoreError> {
    // With no budget left, one child is enough to know whether there are any.
    let share = tx.jobs_left().max(1);
    let children = waiting_after(tx, parent_seq, after_seq, share)?;
    let mut last = after_seq;
    for child_seq in &children {
        // Cancelling a child costs as much as it has parents.
        if tx.is_spent() {
            return save_pending_unblock(tx, parent_seq, failed, last);
        }
        tx.spend_job();
        mark_met(tx, parent_seq, *child_seq)?;
        let child = row::by_seq(tx, *child_seq)?;
        if unblock(tx, &child, &[failed])? == Some(StateName::Cancelled) {
            tx.note_dependent(CancelledDependent { seq: child.seq, id: child.id, parent_seq });
        }
        last = *child_seq;
    }
    if children.len() >= share {
        save_pending_unblock(tx, parent_seq, failed, last)?;
    }
    Ok(())
}

/// Whether some dependents of a finished job are not yet unblocked.
pub(crate) fn has_pending_unblock(tx: &Tx<'_>, parent_seq: i64) -> Result<bool, StoreError> {
    Ok(tx.prepare("select 1 from pending_unblocks where parent_seq = ?1")?.exists([parent_seq])?)
}

/// The jobs that wait for a job, in the order of enqueuing, after one of them.
fn waiting_after(tx: &Tx<'_>, parent_seq: i64, after_seq: i64, limit: usize) -> Result<Vec<i64>, StoreError> {
    // By the primary key of `dependencies`.
    let mut select = tx.prepare(
        "select child_seq from dependencies
         where parent_seq = ?1 and child_seq > ?2 and blocks = 1 order by child_seq limit ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.query_map(params![parent_seq, after_seq, limit], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The child no longer waits for this parent.
fn mark_met(tx: &Tx<'_>, parent_seq: i64, child_seq: i64) -> Result<(), StoreError> {
    tx.prepare("update dependencies set blocks = 0 where parent_seq = ?1 and child_seq = ?2")?
        .execute([parent_seq, child_seq])?;
    Ok(())
}

/// Leaves the remaining children to a later transaction, and wakes a worker for it.
fn save_pending_unblock(
    tx: &Tx<'_>,
    parent_seq: i64,
    failed: bool,
    after_seq: i64,
) -> Result<(), StoreError> {
    tx.prepare(
        "insert or replace into pending_unblocks (parent_seq, failed, after_seq) values (?1, ?2, ?3)",
    )?
    .execute(params![parent_seq, failed, after_seq])?;
    tx.note_pending_unblocks();
    Ok(())
}

/// Applies the end of some dependencies, each failed or not, to a waiting job. The row, which is long if the job
/// depends on many, is written only once. Returns the new state, if the job changed.
pub(crate) fn unblock(
    tx: &Tx<'_>,
    child: &JobRow,
    finished: &[bool],
) -> Result<Option<StateName>, StoreError> {
    let policy = settings::policy(tx, child)?;
    let mut unblocked: Option<Transition> = None;
    for failed in finished {
        let event = match (*failed, child.options.on_dependency_failure) {
            (true, OnDependencyFailure::Cancel) => Event::DependencyFailed,
            (true, OnDependencyFailure::Run) | (false, _) => Event::DependencyMet,
        };
        let life = unblocked.as_ref().map_or(&child.life, |unblocked| &unblocked.life);
        if let Ok(next) = transition(life, event, &policy, tx.now) {
            unblocked = Some(Transition { from: child.life.state.name(), ..next });
        }
    }
    let Some(unblocked) = unblocked else {
        return Ok(None);
    };
    let is_applied = apply(tx, child, &unblocked, &child.latest)?;
    Ok(is_applied.then(|| unblocked.life.state.name()))
}
