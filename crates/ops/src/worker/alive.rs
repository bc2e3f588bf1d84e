//! Which workers are alive.
//!
//! A row in the store says that a worker began and did not say goodbye; whether it still lives is another question,
//! and this is the one place that answers it for a person. (What a reaper may do about a worker is decided by
//! [`sys::host::reach`].)

use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{ServedJobs, Store, StoreError, Worker, WorkerState};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::Role;
use sys::host;

/// Whether a worker that did not say goodbye is still there: while it lives it holds a lock, in whatever container. Where
/// its lock file cannot be found, it counts as alive if it was heard from after this time.
pub fn is_alive(worker: &Worker, heard_after: impl FnOnce() -> Timestamp) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    if host::finds_lock_of(&worker.origin, folder, name) {
        // One whose lock cannot be looked at is taken at its word.
        liveness_lock::is_held(folder, name, Role::Worker).unwrap_or(true)
    } else {
        worker.last_heartbeat > heard_after()
    }
}

/// The workers that have not stopped and are alive.
pub fn live_workers(store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
    // What `enqueue` asks each time is worth a cheaper question first.
    if !store.has_worker()? {
        return Ok(Vec::new());
    }
    Ok(parted(store)?.0)
}

/// The workers that have not stopped: those that are alive, and those that are not.
pub fn parted(store: &dyn Store) -> Result<(Vec<Worker>, Vec<Worker>), StoreError> {
    let workers = store.workers()?;
    let heard_after = || a_lease_ago(store).unwrap_or(Timestamp::EPOCH);
    Ok(workers.into_iter().partition(|worker| is_alive(worker, heard_after)))
}

fn a_lease_ago(store: &dyn Store) -> Result<Timestamp, StoreError> {
    Ok(store.now()?.saturating_sub(in_force(store)?.lease))
}

/// Whether one of these workers takes jobs of this queue.
pub fn is_served(queue: &QueueName, workers: &[Worker]) -> bool {
    workers.iter().any(|worker| match &worker.served {
        ServedJobs::All => true,
        ServedJobs::InOrder(queues) => queues.contains(queue),
        ServedJobs::Job(_) => false,
    })
}

/// Whether one of these workers takes jobs as they come; one that serves a single job does not.
pub fn is_any_for_all_comers(workers: &[Worker]) -> bool {
    workers.iter().any(|worker| match worker.served {
        ServedJobs::All | ServedJobs::InOrder(_) => true,
        ServedJobs::Job(_) => false,
    })
}

/// Why none of these workers, all alive, starts jobs as they come; `None` if one does, or one is there for a single job.
pub fn why_nothing_starts(workers: &[Worker]) -> Option<&'static str> {
    if workers.is_empty() {
        return Some("no worker is running");
    }
    let is_draining = |worker: &&Worker| worker.state != WorkerState::Running;
    let (draining, running): (Vec<&Worker>, Vec<&Worker>) = workers.iter().partition(is_draining);
    let is_any =
        !draining.is_empty() && !running.iter().any(|worker| !matches!(worker.served, ServedJobs::Job(_)));
    is_any.then_some("all workers are draining")
}
