//! The end of a worker that `enqueue` started because the setting `autostart` is on: it leaves when it has been idle for a
//! while.

use std::time::Instant;

use super::Worker;
use store::{JobFilter, Page, Phase, Store, StoreError, WorkerState};

impl Worker<'_> {
    /// Ends a worker that `enqueue` started, when it has been idle for long enough and nothing will become due by itself.
    pub(crate) fn end_after_idle_time(&mut self, has_no_jobs: bool) {
        let now = Instant::now();
        let is_idle = has_no_jobs && self.is_idle() && !self.has_deliveries() && self.next_fire.is_none();
        if !is_idle {
            self.idle_since = None;
            return;
        }
        let since = *self.idle_since.get_or_insert(now);
        if now.duration_since(since) < self.settings.autostart_idle {
            return;
        }
        match self.announce_end() {
            Ok(true) => self.drain(None),
            Ok(false) => self.idle_since = None,
            Err(error) => self.journal.error(&error),
        }
    }

    /// Whether there is still no job after this worker has said that it ends. A caller that enqueues a job before the
    /// second look is heard here; one that comes later sees a draining worker, and starts another.
    fn announce_end(&self) -> Result<bool, StoreError> {
        let (store, id) = (self.store.as_ref(), &self.plan.id);
        if has_scheduled_job(store)? {
            return Ok(false);
        }
        store.set_worker_state(id, WorkerState::Draining)?;
        let is_idle = store.is_idle(id)? && !has_scheduled_job(store)?;
        if !is_idle {
            store.set_worker_state(id, WorkerState::Running)?;
        }
        Ok(is_idle)
    }
}

/// Whether a job waits for a time. Its worker must be there when that comes.
fn has_scheduled_job(store: &dyn Store) -> Result<bool, StoreError> {
    let one = Page { limit: 1, after: None };
    Ok(!store.list(&JobFilter::in_phase(Phase::Scheduled), &one)?.is_empty())
}
