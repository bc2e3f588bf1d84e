//! Reaping the jobs of a worker whose machine is gone for good (`worker forget`).

use super::reaper::{check_noted_survivors, holds_a_lock, kill_orphans_of, lives, started_leases};
use crate::EngineError;
use crate::worker::files;
use domain::values::name::WorkerId;
use store::settings::in_force;
use store::{LeaseRef, Store, StoreError};
use sys::fs::liveness_lock::Role;
use sys::host;
use sys::host::{Observer, Reach};

/// Reaps the worker's jobs. Refused while it may be alive; its orphans are killed first if it ran on this machine.
pub fn forget(store: &dyn Store, id: &WorkerId) -> Result<Vec<LeaseRef>, EngineError> {
    let workers = store.workers()?;
    let worker = workers.iter().find(|worker| worker.id == *id);
    let worker = worker.ok_or_else(|| StoreError::NoSuchWorker(id.clone()))?;
    let (now, lease) = (store.now()?, in_force(store)?.lease);
    let observer =
        Observer::here().map_err(EngineError::system("failed to determine the host of this process"))?;
    let reach = host::reach(&observer, &worker.origin, &worker.folder, id.as_str());
    let may_live = match reach {
        // A living supervisor takes care of its workers itself.
        Reach::Here => lives(worker, Role::Worker) || lives(worker, Role::Supervisor),
        Reach::Rebooted => holds_a_lock(worker),
        Reach::Elsewhere => holds_a_lock(worker) || now.since(worker.last_heartbeat) < lease,
    };
    if may_live {
        return Err(EngineError::WorkerLives { worker: id.clone() });
    }
    if reach == Reach::Here {
        kill_orphans_of(worker, now, lease)
            .and(check_noted_survivors(store, worker)?)
            .map_err(|obstacle| EngineError::CannotForget { worker: id.clone(), why: obstacle.why })?;
    }
    let leases = store.reap(id, started_leases(&worker.folder, id).as_deref(), &[])?;
    files::remove(&worker.folder, id);
    Ok(leases)
}
