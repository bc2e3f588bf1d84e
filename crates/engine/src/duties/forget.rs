//! Forgetting a worker whose machine is gone for good: its jobs are given back.

use super::reaper::{holds_a_lock, nothing_noted_lives, started, sweep_after};
use crate::EngineError;
use crate::worker::files;
use domain::values::name::WorkerId;
use store::settings::in_force;
use store::{LeaseRef, Store, StoreError, Worker};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::Role;
use sys::host;
use sys::host::{Reach, Vantage};

/// Gives back what it held. Refused while it may live; what it left behind is killed first where it can be seen.
pub fn forget(store: &dyn Store, id: &WorkerId) -> Result<Vec<LeaseRef>, EngineError> {
    let workers = store.workers()?;
    let worker = workers.iter().find(|worker| worker.id == *id);
    let worker = worker.ok_or_else(|| StoreError::NoSuchWorker(id.clone()))?;
    let (now, lease) = (store.now()?, in_force(store)?.lease);
    let vantage = Vantage::here().map_err(EngineError::system("failed to read where this process runs"))?;
    let reach = host::reach(&vantage, &worker.origin, &worker.folder, id.as_str());
    let may_live = match reach {
        Reach::Here => lives_here(worker),
        Reach::Rebooted => holds_a_lock(worker),
        Reach::Elsewhere => holds_a_lock(worker) || now.since(worker.last_heartbeat) < lease,
    };
    if may_live {
        return Err(EngineError::WorkerLives { worker: id.clone() });
    }
    if reach == Reach::Here {
        sweep_after(worker, now, lease)
            .and(nothing_noted_lives(store, worker)?)
            .map_err(|obstacle| EngineError::CannotForget { worker: id.clone(), why: obstacle.why })?;
    }
    let leases = store.reap(id, started(&worker.folder, id).as_deref())?;
    files::remove(&worker.folder, id);
    Ok(leases)
}

/// While its supervisor lives, that takes care of it. A lock that cannot be looked at proves nothing.
fn lives_here(worker: &Worker) -> bool {
    let holds = |role| liveness_lock::is_held(&worker.folder, worker.id.as_str(), role).unwrap_or(true);
    holds(Role::Worker) || holds(Role::Supervisor)
}
