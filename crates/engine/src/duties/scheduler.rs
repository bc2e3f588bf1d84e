//! Fires schedules: every worker does, whatever queues it serves, so that one is enough.
//!
//! The store hands each occurrence to whoever comes first. When the next one is due a worker learns with its orders, and
//! wakes up then: schedules that are far away cost nothing.

use std::time::Duration;

use crate::journal::Journal;
use domain::values::timestamp::Timestamp;
use store::{FireResult, Store, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    next_at: Option<Timestamp>,
}

impl Scheduler {
    /// What the orders say: when the next schedule is due.
    pub(crate) fn note(&mut self, next_at: Option<Timestamp>) {
        self.next_at = next_at;
    }

    /// How long until a schedule is due, as far as is known.
    pub(crate) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        Some(self.next_at?.since(now))
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// Enqueues what is due. Where very much is, the rest is due still, and for the next time.
    pub(crate) fn run_once(&mut self, store: &dyn Store, journal: &Journal) -> Result<(), StoreError> {
        let FireResult { jobs, held, next_at } = store.fire_due()?;
        self.next_at = next_at;
        for job in &jobs {
            journal.fired(job);
        }
        for (schedule, why) in &held {
            journal.schedule_held(schedule, why);
        }
        Ok(())
    }
}
