//! Forgetting a worker whose machine is gone for good: its jobs are given back.

use super::EngineError;
use super::files;
use super::reaper::{started, sweep_after};
use crate::domain::name::WorkerId;
use crate::domain::timestamp::Timestamp;
use crate::store::settings::in_force;
use crate::store::{LeaseRef, Store, StoreError, Worker};
use crate::sys::boot;
use crate::sys::life_line::{self, Role};

/// Gives back what it held. Refused while it may live; what it left behind on this machine is killed first.
pub fn forget(store: &dyn Store, id: &WorkerId) -> Result<Vec<LeaseRef>, EngineError> {
    let workers = store.workers()?;
    let worker = workers.iter().find(|worker| worker.id == *id);
    let worker = worker.ok_or_else(|| StoreError::NoSuchWorker(id.clone()))?;
    let (now, lease) = (store.now()?, in_force(store)?.lease);
    let boot_id = boot::id().map_err(EngineError::system("failed to read the boot id"))?;
    if worker.boot_id == boot_id {
        if lives_here(worker) {
            return Err(EngineError::WorkerLives { worker: id.clone() });
        }
        let worker_id = id.clone();
        sweep_after(worker, now, lease)
            .map_err(|why| EngineError::CannotForget { worker: worker_id, why })?;
    } else if may_live_elsewhere(worker, now, lease) {
        return Err(EngineError::WorkerLives { worker: id.clone() });
    }
    let leases = store.reap(id, started(&worker.folder, id).as_deref())?;
    files::remove(&worker.folder, id);
    Ok(leases)
}

/// While its guardian lives, that takes care of it. A lock that cannot be looked at proves nothing.
fn lives_here(worker: &Worker) -> bool {
    let holds = |role| life_line::is_held(&worker.folder, worker.id.as_str(), role).unwrap_or(true);
    holds(Role::Worker) || holds(Role::Guardian)
}

/// Nothing outlives a boot of this machine; of another machine all that is known is when it was last heard from.
fn may_live_elsewhere(worker: &Worker, now: Timestamp, lease: std::time::Duration) -> bool {
    worker.host != boot::host() && now.since(worker.last_heartbeat) < lease
}
