//! Taking back what a dead worker held.

use super::tx::Tx;
use super::{leases, workers};
use crate::domain::name::WorkerId;
use crate::store::{LeaseRef, StoreError, WorkerState};

pub(super) fn reap(
    tx: &Tx<'_>,
    worker: &WorkerId,
    started: Option<&[LeaseRef]>,
) -> Result<Vec<LeaseRef>, StoreError> {
    let worker_seq = workers::seq(tx, worker)?;
    let mut reaped = Vec::new();
    for job in leases::held_by(tx, worker_seq)? {
        let lease = leases::lease_on(&job);
        let taken = if started.is_none_or(|started| started.contains(&lease)) {
            leases::lose(tx, &job, worker_seq, worker)?
        } else {
            leases::release(tx, &job, worker_seq)?
        };
        if taken {
            reaped.push(lease);
        }
    }
    workers::set_state(tx, worker_seq, WorkerState::Stopped)?;
    Ok(reaped)
}
