//! Lengthening leases.

use super::jobs::apply;
use super::tx::Tx;
use super::{row, settings, workers};
use crate::domain::life::{Event, State, transition};
use crate::domain::name::WorkerId;
use crate::store::{LeaseRef, LeaseStatus, StoreError};

pub(super) fn extend(
    tx: &Tx<'_>,
    worker: &WorkerId,
    leases: &[LeaseRef],
) -> Result<Vec<LeaseStatus>, StoreError> {
    let worker_seq = workers::seq(tx, worker)?;
    workers::beat(tx, worker_seq)?;
    leases.iter().map(|lease| extend_one(tx, worker_seq, lease)).collect()
}

fn extend_one(tx: &Tx<'_>, worker_seq: i64, lease: &LeaseRef) -> Result<LeaseStatus, StoreError> {
    let Some(job) = row::by_id(tx, &lease.job)?.filter(|job| job.worker_seq == Some(worker_seq)) else {
        return Ok(LeaseStatus::Lost);
    };
    let until = tx.now.saturating_add(tx.settings()?.lease);
    let event = Event::Extend { attempt: lease.attempt, until };
    let policy = settings::policy(tx, &job)?;
    let Ok(extended) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(LeaseStatus::Lost);
    };
    if !apply(tx, &job, &extended, &job.latest)? {
        return Ok(LeaseStatus::Lost);
    }
    Ok(match &job.life.state {
        State::Processing(held) if held.cancel_requested => LeaseStatus::CancelRequested,
        State::Processing(_)
        | State::Pending { .. }
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. } => LeaseStatus::Held,
    })
}
