//! Lengthening leases, and giving back those that the worker does not know of.

use std::collections::HashSet;

use super::jobs::apply;
use super::tx::Tx;
use super::{leases, row, settings, workers};
use crate::domain::life::{Event, State, transition};
use crate::domain::name::WorkerId;
use crate::store::{LeaseRef, LeaseStatus, StoreError};

pub(super) fn extend(
    tx: &Tx<'_>,
    worker: &WorkerId,
    known: &[LeaseRef],
) -> Result<Vec<LeaseStatus>, StoreError> {
    let worker_seq = workers::seq(tx, worker)?;
    workers::beat(tx, worker_seq)?;
    let statuses: Result<_, _> = known.iter().map(|lease| extend_one(tx, worker_seq, lease)).collect();
    release_others(tx, worker_seq, known)?;
    statuses
}

/// Whatever else the worker holds it was given by a claim whose commit it never saw succeed.
fn release_others(tx: &Tx<'_>, worker_seq: i64, known: &[LeaseRef]) -> Result<(), StoreError> {
    let known: HashSet<&LeaseRef> = known.iter().collect();
    for job in leases::held_by(tx, worker_seq)? {
        if !known.contains(&leases::lease_on(&job)) {
            leases::release(tx, &job, worker_seq)?;
        }
    }
    Ok(())
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
