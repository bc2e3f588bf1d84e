//! How long the heartbeats of workers have not changed, as observed by this process.
//!
//! A heartbeat is a wall-clock time, and that clock may jump; so the observer checks only whether it changes, and
//! measures the time since the last change on its own monotonic clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::Worker;

#[derive(Debug, Default)]
pub(crate) struct HeartbeatAges {
    since: HashMap<WorkerId, (Timestamp, Instant)>,
}

impl HeartbeatAges {
    /// How long this worker's heartbeat has not changed; zero on the first call for this worker.
    pub(crate) fn of(&mut self, worker: &Worker) -> Duration {
        let now = (worker.last_heartbeat, Instant::now());
        let known = self.since.entry(worker.id.clone()).or_insert(now);
        if known.0 != worker.last_heartbeat {
            *known = now;
        }
        known.1.elapsed()
    }

    /// Drops all workers but these.
    pub(crate) fn keep(&mut self, workers: &[Worker]) {
        self.since.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// Starts over, because the observer itself was asleep.
    pub(crate) fn clear(&mut self) {
        self.since.clear();
    }
}
