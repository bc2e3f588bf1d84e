//! Which workers are alive.
//!
//! A row in the store says that a worker began and did not say goodbye; whether it still lives is another question,
//! and this is the one place that answers it.

use crate::store::{Store, StoreError, Worker};

/// Whether a worker that did not say goodbye is still there. For now its word is taken for it.
pub fn is_alive(_worker: &Worker) -> bool {
    true
}

/// The workers that have not stopped and are alive.
pub fn live_workers(store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
    let mut workers = store.workers()?;
    workers.retain(is_alive);
    Ok(workers)
}
