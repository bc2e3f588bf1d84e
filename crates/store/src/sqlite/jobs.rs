//! Applying a transition: the guarded update, and everything that depends on a job's state.

pub(crate) mod dependencies;
pub(crate) mod environments;
pub(crate) mod history;
pub(crate) mod leases;
pub(crate) mod ready;
pub(crate) mod unique_keys;
pub(crate) mod unkillable;

use rusqlite::params;

use super::session::row::JobRow;
use super::session::tx::{FinishedJob, Tx};
use super::tables::{outbox, workers};
use crate::StoreError;
use domain::job::LatestAttempt;
use domain::job::life::{CancelReason, Life, State, StateName, Transition, WaitIndex};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// Applies a transition to a job; `false` if the row has changed since the decision.
pub(super) fn apply(
    tx: &Tx<'_>,
    before: &JobRow,
    transition: &Transition,
    latest: &LatestAttempt,
) -> Result<bool, StoreError> {
    let life = &transition.life;
    if !update(tx, before, life, latest)? {
        return Ok(false);
    }
    let (from, to) = (transition.from, life.state.name());
    if from != to {
        let mut counters = tx.counters.borrow_mut();
        counters.leave(before.queue_id, from);
        counters.enter(before.queue_id, to);
        if let Some(batch_id) = before.batch_id {
            counters.leave_batch(batch_id, from);
            counters.enter_batch(batch_id, to);
        }
    }
    if before.life.wait_index(tx.now) != WaitIndex::None {
        ready::remove(tx, before)?;
    }
    ready::insert(tx, before, life)?;
    unique_keys::release(tx, before, from, to)?;
    if to.is_finished() {
        if matches!(before.life.state, State::Pending { blocked_by } if blocked_by > 0) {
            dependencies::stop_waiting(tx, before.seq)?;
        }
        tx.note_finished(FinishedJob { seq: before.seq, failed: is_failure(to) });
    }
    if from != to {
        outbox::job_changed(tx, before, to)?;
    }
    Ok(true)
}

/// The fence: the row must still have the attempt and the state on which the decision was based.
fn update(tx: &Tx<'_>, before: &JobRow, life: &Life, latest: &LatestAttempt) -> Result<bool, StoreError> {
    let columns = StateColumns::of(tx, &life.state)?;
    let mut update = tx.prepare(
        "update jobs
         set state = ?4, blocked_by = ?5, due_at = ?6, attempts = ?7, failures = ?8, losses = ?9, loss_boot = ?10,
             worker_seq = ?11, lease_until = ?12, cancel_requested = ?13, started_at = ?14, finished_at = ?15,
             reason = ?16, exit_code = ?17, signal = ?18, error = ?19, updated_at = ?20
         where seq = ?1 and attempts = ?2 and state = ?3",
    )?;
    let changed = update.execute(params![
        before.seq,
        before.life.attempts,
        before.life.state.name().name(),
        life.state.name().name(),
        columns.blocked_by,
        life.due_at.as_millis(),
        life.attempts,
        life.failures,
        life.losses.count,
        life.losses.boot,
        columns.worker_seq,
        columns.lease_until,
        columns.cancel_requested,
        latest.started_at.map(Timestamp::as_millis),
        columns.finished_at,
        columns.reason,
        latest.exit_code,
        latest.signal.map(Signal::number),
        latest.error,
        tx.now.as_millis(),
    ])?;
    Ok(changed == 1)
}

/// The columns that only some states fill.
#[derive(Default)]
struct StateColumns {
    blocked_by: u32,
    worker_seq: Option<i64>,
    lease_until: Option<i64>,
    cancel_requested: i64,
    finished_at: Option<i64>,
    reason: Option<&'static str>,
}

impl StateColumns {
    fn of(tx: &Tx<'_>, state: &State) -> Result<Self, StoreError> {
        let none = Self::default();
        Ok(match state {
            State::Pending { blocked_by } => Self { blocked_by: *blocked_by, ..none },
            State::Processing(lease) => Self {
                worker_seq: Some(workers::seq(tx, &lease.worker)?),
                lease_until: Some(tx.lease_to_stored(lease.until)),
                cancel_requested: cancel_number(lease.cancel_requested),
                ..none
            },
            State::Completed { finished_at } => Self { finished_at: Some(finished_at.as_millis()), ..none },
            State::Failed => none,
            State::Dead { finished_at, reason } => {
                Self { finished_at: Some(finished_at.as_millis()), reason: Some(reason.name()), ..none }
            }
            State::Cancelled { finished_at, reason } => {
                Self { finished_at: Some(finished_at.as_millis()), reason: Some(reason.name()), ..none }
            }
        })
    }
}

/// The stored form of a requested cancellation.
pub(super) fn cancel_number(reason: Option<CancelReason>) -> i64 {
    match reason {
        None => 0,
        Some(CancelReason::User) => 1,
        Some(CancelReason::Replaced) => 2,
        Some(CancelReason::Dependency) => unreachable!("a running job waits for no other job"),
    }
}

/// Whether a job in this state counts as failed to the jobs that depend on it. `false` for a job that is not finished.
pub(super) fn is_failure(state: StateName) -> bool {
    match state {
        StateName::Dead | StateName::Cancelled => true,
        StateName::Completed | StateName::Pending | StateName::Processing | StateName::Failed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_job_that_did_not_complete_is_a_failure_to_its_dependents() {
        for (state, failed) in [
            (StateName::Pending, false),
            (StateName::Processing, false),
            (StateName::Completed, false),
            (StateName::Failed, false),
            (StateName::Dead, true),
            (StateName::Cancelled, true),
        ] {
            assert_eq!(is_failure(state), failed, "{state:?}");
            assert!(!failed || state.is_finished(), "{state:?}");
        }
    }
}
