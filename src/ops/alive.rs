//! Which workers are alive.
//!
//! A row in the store says that a worker began and did not say goodbye; whether it still lives is another question,
//! and this is the one place that answers it.

use crate::domain::name::QueueName;
use crate::store::{Served, Store, StoreError, Worker};
use crate::sys::boot;
use crate::sys::life_line::{self, Role};

/// Whether a worker that did not say goodbye is still there: nothing outlives a boot, and while it lives it holds a
/// lock. One whose lock cannot be looked at is taken at its word.
pub fn is_alive(worker: &Worker) -> bool {
    let same_boot = boot::id().map_or(true, |boot_id| boot_id == worker.boot_id);
    same_boot && life_line::is_held(&worker.folder, worker.id.as_str(), Role::Worker).unwrap_or(true)
}

/// The workers that have not stopped and are alive.
pub fn live_workers(store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
    // What `enqueue` asks each time is worth a cheaper question first.
    if !store.has_worker()? {
        return Ok(Vec::new());
    }
    let mut workers = store.workers()?;
    workers.retain(is_alive);
    Ok(workers)
}

/// Whether one of these workers takes jobs of this queue.
pub fn is_served(queue: &QueueName, workers: &[Worker]) -> bool {
    workers.iter().any(|worker| match &worker.served {
        Served::All => true,
        Served::InOrder(queues) => queues.contains(queue),
        Served::Job(_) => false,
    })
}

/// Whether one of these workers takes jobs as they come; one that serves a single job does not.
pub fn is_any_for_all_comers(workers: &[Worker]) -> bool {
    workers.iter().any(|worker| match worker.served {
        Served::All | Served::InOrder(_) => true,
        Served::Job(_) => false,
    })
}
