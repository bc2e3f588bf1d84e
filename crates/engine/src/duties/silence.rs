//! How long workers have been silent, as this process saw it.
//!
//! A heartbeat is a time of the wall clock, which may jump; so an observer judges by whether it changes, and counts the
//! time that it does not on its own clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::Worker;

#[derive(Debug, Default)]
pub(crate) struct Silences {
    since: HashMap<WorkerId, (Timestamp, Instant)>,
}

impl Silences {
    /// How long this worker's heartbeat has not changed; nothing where it is looked at for the first time.
    pub(crate) fn of(&mut self, worker: &Worker) -> Duration {
        let now = (worker.last_heartbeat, Instant::now());
        let known = self.since.entry(worker.id.clone()).or_insert(now);
        if known.0 != worker.last_heartbeat {
            *known = now;
        }
        known.1.elapsed()
    }

    /// Forgets all but these workers.
    pub(crate) fn keep(&mut self, workers: &[Worker]) {
        self.since.retain(|id, _| workers.iter().any(|worker| worker.id == *id));
    }

    /// The observer itself was absent: no silence was observed.
    pub(crate) fn clear(&mut self) {
        self.since.clear();
    }
}
