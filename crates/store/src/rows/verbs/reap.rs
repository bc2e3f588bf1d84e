//! Taking back the leases of a dead worker.

use crate::rows::jobs::leases;
use crate::rows::jobs::row::JobRow;
use crate::rows::tables::{deliveries, outbox, workers};
use crate::rows::tx::Tx;
use crate::{LeaseRef, Result, WorkerState};
use domain::job::life::LossContext;
use domain::values::name::WorkerId;

pub(crate) fn reap(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    started: Option<&[LeaseRef]>,
    stay: &[LeaseRef],
) -> Result<Vec<LeaseRef>> {
    let worker_seq = workers::seq(tx, worker)?;
    let reaped = take_back(tx, worker, started, stay)?;
    if !stay.is_empty() {
        return Ok(reaped);
    }
    deliveries::take_back(tx, worker_seq, &format!("worker {worker} died"))?;
    // A worker for certain jobs that are finished may be killed with its caller before it could deregister.
    let is_crash = workers::served(tx, worker_seq)?.takes_new_jobs() || !reaped.is_empty();
    // Hooks fire once per worker, however often it is reaped.
    if is_crash && workers::is_live(tx, worker_seq)? {
        outbox::worker_crashed(tx, worker, &reaped)?;
    }
    let held = if reaped.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", reaped.len()) };
    workers::note_end(tx, worker, "worker_died", &format!("it held {held}"))?;
    workers::set_state(tx, worker_seq, WorkerState::Stopped)?;
    Ok(reaped)
}

/// Takes back the leases of a dead worker, except those in `stay`.
fn take_back(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    started: Option<&[LeaseRef]>,
    stay: &[LeaseRef],
) -> Result<Vec<LeaseRef>> {
    let worker_seq = workers::seq(tx, worker)?;
    let held = leases::held_by(tx, worker_seq)?;
    let was_started = |job: &JobRow| started.is_none_or(|started| started.contains(&leases::lease_on(job)));
    let started_count = held.iter().filter(|job| was_started(job)).count();
    let loss_context = if started_count > 1 { LossContext::Others } else { LossContext::Alone };
    let mut reaped = Vec::new();
    for job in held {
        let lease = leases::lease_on(&job);
        if stay.contains(&lease) {
            continue;
        }
        let taken = if was_started(&job) {
            leases::lose(tx, &job, worker_seq, format!("worker {worker} died"), loss_context)?
        } else {
            leases::release(tx, &job, worker_seq)?
        };
        if taken {
            reaped.push(lease);
        }
    }
    Ok(reaped)
}
