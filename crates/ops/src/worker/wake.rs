//! Waking workers on this machine after a change in the store that concerns them. The change itself is in the store, so a
//! worker that misses the wake-up sees it half a second later.

use domain::values::name::WorkerId;
use store::{Store, StoreError, Worker, worker_bell};
use sys::bell;

/// Wakes all workers.
pub fn wake_all(store: &dyn Store) -> Result<(), StoreError> {
    if store.has_worker()? {
        ring(&store.workers()?, |_| true);
    }
    Ok(())
}

/// Wakes the workers with these ids.
pub fn wake(store: &dyn Store, ids: &[WorkerId]) -> Result<(), StoreError> {
    if !ids.is_empty() {
        ring(&store.workers()?, |worker| ids.contains(&worker.id));
    }
    Ok(())
}

/// Tells a worker that a reader follows the output of this job, so that the worker writes it to the log file at once.
pub fn announce_reader(store: &dyn Store, worker: &WorkerId, job: u64) -> Result<(), StoreError> {
    if let Some(worker) = store.workers()?.iter().find(|known| known.id == *worker) {
        bell::ring_with_number(&worker_bell(&worker.folder, &worker.id), job);
    }
    Ok(())
}

fn ring(workers: &[Worker], is_target: impl Fn(&Worker) -> bool) {
    for worker in workers.iter().filter(|worker| is_target(worker)) {
        bell::ring_at(&worker_bell(&worker.folder, &worker.id), 1);
    }
}
