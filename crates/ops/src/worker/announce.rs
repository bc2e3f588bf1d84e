//! Telling workers on this machine that there are orders for them. What they are is in the store; a worker that does not
//! hear of it finds it there half a second later.

use domain::values::name::WorkerId;
use store::{Store, StoreError, Worker, worker_bell};
use sys::bell;

/// Tells all workers.
pub fn to_all(store: &dyn Store) -> Result<(), StoreError> {
    if store.has_worker()? {
        ring(&store.workers()?, |_| true);
    }
    Ok(())
}

/// Tells these workers.
pub fn to(store: &dyn Store, ids: &[WorkerId]) -> Result<(), StoreError> {
    if !ids.is_empty() {
        ring(&store.workers()?, |worker| ids.contains(&worker.id));
    }
    Ok(())
}

/// Tells a worker that a reader follows the output of this job: the worker then writes it to a file at once.
pub fn reader(store: &dyn Store, worker: &WorkerId, job: u64) -> Result<(), StoreError> {
    if let Some(worker) = store.workers()?.iter().find(|known| known.id == *worker) {
        bell::ring_with_number(&worker_bell(&worker.folder, &worker.id), job);
    }
    Ok(())
}

fn ring(workers: &[Worker], is_meant: impl Fn(&Worker) -> bool) {
    for worker in workers.iter().filter(|worker| is_meant(worker)) {
        bell::ring_at(&worker_bell(&worker.folder, &worker.id), 1);
    }
}
