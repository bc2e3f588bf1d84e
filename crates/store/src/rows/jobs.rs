//! Applying a transition: the guarded update, and everything that depends on a job's state.

pub(crate) mod causes;
pub(crate) mod dependencies;
pub(crate) mod environments;
pub(crate) mod history;
pub(crate) mod leases;
pub(crate) mod output_parts;
pub(crate) mod ready;
pub(crate) mod requests;
pub(crate) mod row;
pub(crate) mod unique_keys;
pub(crate) mod unkillable;

use super::tables::{outbox, workers};
use super::tx::{FinishedJob, Tx};
use crate::Result;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::WorkerSeq;
use crate::rows::params;
use domain::job::LatestAttempt;
use domain::job::life::{CancelReason, Life, State, Transition, WaitIndex};
use domain::plan::consequences::consequences;
use domain::values::timestamp::Timestamp;

/// Applies a transition to a job; `false` if the row has changed since the decision.
pub(crate) fn apply(
    tx: &mut Tx<'_>,
    before: &JobRow,
    transition: &Transition,
    latest: &LatestAttempt,
) -> Result<bool> {
    let life = &transition.life;
    if !update(tx, before, life, latest)? {
        return Ok(false);
    }
    let key = before.unique_key.as_ref().map(|_| before.options.unique_for);
    let entailed = consequences(&before.life, transition, key, tx.now);
    if let Some((from, to)) = entailed.counted {
        tx.counters.change_state(before.queue_id, before.batch_id, from, to);
        causes::change(tx, before, life, latest)?;
    }
    if entailed.leaves != WaitIndex::None {
        ready::remove(tx, before)?;
    }
    ready::insert(tx, before, life.due_at, entailed.enters)?;
    if entailed.releases_key {
        unique_keys::delete(tx, before)?;
    }
    if entailed.stops_waiting {
        dependencies::stop_waiting(tx, before.seq)?;
    }
    if let Some(end) = entailed.finished {
        tx.finished.push(FinishedJob { seq: before.seq, end });
    }
    if let Some(event) = entailed.event {
        outbox::job_changed(tx, before, event)?;
    }
    Ok(true)
}

/// The fence: the row must still have the attempt and the state on which the decision was based.
pub(crate) const UPDATE: &str = "update jobs
     set state = ?4, blocked_by = ?5, due_at = ?6, attempts = ?7, failures = ?8, losses = ?9, loss_boot = ?10,
         worker_seq = ?11, lease_until = ?12, cancel_requested = ?13, started_at = ?14, finished_at = ?15,
         reason = ?16, exit_code = ?17, signal = ?18, error = ?19, updated_at = ?20
     where seq = ?1 and attempts = ?2 and state = ?3";

fn update(tx: &Tx<'_>, before: &JobRow, life: &Life, latest: &LatestAttempt) -> Result<bool> {
    let columns = StateColumns::of(tx, &life.state)?;
    let changed = tx.execute(
        UPDATE,
        params![
            before.seq,
            before.life.attempts,
            before.life.state.name(),
            life.state.name(),
            columns.blocked_by,
            life.due_at,
            life.attempts,
            life.failures,
            life.losses.count,
            life.losses.boot,
            columns.worker_seq,
            columns.lease_until,
            columns.cancel_requested,
            latest.started_at,
            columns.finished_at,
            columns.reason,
            latest.exit_code,
            latest.signal,
            latest.error,
            tx.now,
        ],
    )?;
    Ok(changed == 1)
}

/// The columns that only some states fill.
struct StateColumns {
    blocked_by: u32,
    worker_seq: Option<WorkerSeq>,
    lease_until: Option<i64>,
    cancel_requested: i64,
    finished_at: Option<Timestamp>,
    reason: Option<&'static str>,
}

impl StateColumns {
    fn of(tx: &Tx<'_>, state: &State) -> Result<Self> {
        let lease = state.lease();
        Ok(Self {
            blocked_by: state.blocked_by(),
            worker_seq: lease.map(|lease| workers::seq(tx, &lease.worker)).transpose()?,
            lease_until: lease.map(|lease| tx.lease_to_stored(lease.until)),
            cancel_requested: cancel_number(lease.and_then(|lease| lease.cancel_requested)),
            finished_at: state.finished_at(),
            reason: state.reason(),
        })
    }
}

/// The stored form of a requested cancellation.
pub(crate) fn cancel_number(reason: Option<CancelReason>) -> i64 {
    match reason {
        None => 0,
        Some(CancelReason::User) => 1,
        Some(CancelReason::Replaced) => 2,
        Some(CancelReason::Dependency) => unreachable!("a running job waits for no other job"),
    }
}
