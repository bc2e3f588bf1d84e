//! Extending leases, and releasing those that the worker does not know of.

use std::collections::{HashMap, HashSet};

use crate::rows::jobs::apply;
use crate::rows::jobs::leases;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::WorkerSeq;
use crate::rows::tables::{settings, workers};
use crate::rows::tx::Tx;
use crate::{LeaseRef, LeaseStatus, Result};
use domain::job::life::{Event, transition};
use domain::values::name::WorkerId;
use domain::values::signal::Signal;

pub(crate) fn extend(tx: &mut Tx<'_>, worker: &WorkerId, known: &[LeaseRef]) -> Result<Vec<LeaseStatus>> {
    let worker_seq = workers::seq(tx, worker)?;
    workers::beat(tx, worker_seq)?;
    let held = leases::held_by(tx, worker_seq)?;
    let held: HashMap<LeaseRef, JobRow> = held.into_iter().map(|job| (leases::lease_on(&job), job)).collect();
    release_others(tx, worker_seq, &held, known)?;
    let extend = |lease| match held.get(lease) {
        Some(job) => extend_one(tx, job),
        None => Ok(LeaseStatus::Lost),
    };
    known.iter().map(extend).collect()
}

/// A lease that the worker does not name stems from a claim whose commit it never saw succeed.
fn release_others(
    tx: &mut Tx<'_>,
    worker_seq: WorkerSeq,
    held: &HashMap<LeaseRef, JobRow>,
    known: &[LeaseRef],
) -> Result<()> {
    let known: HashSet<&LeaseRef> = known.iter().collect();
    for (lease, job) in held {
        if !known.contains(lease) {
            leases::release(tx, job, worker_seq)?;
        }
    }
    Ok(())
}

fn extend_one(tx: &mut Tx<'_>, job: &JobRow) -> Result<LeaseStatus> {
    let until = tx.now.saturating_add(tx.settings()?.lease);
    let event = Event::Extend { attempt: job.life.attempts, until };
    let policy = settings::policy(tx, job)?;
    let Ok(extended) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(LeaseStatus::Lost);
    };
    if !apply(tx, job, &extended, &job.latest)? {
        return Ok(LeaseStatus::Lost);
    }
    let cancelled = job.life.state.lease().filter(|lease| lease.cancel_requested.is_some());
    Ok(match cancelled {
        Some(lease) => LeaseStatus::CancelRequested(lease.cancel_signal.unwrap_or(Signal::TERM)),
        None => LeaseStatus::Held,
    })
}
