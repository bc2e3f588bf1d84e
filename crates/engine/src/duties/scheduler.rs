//! Fires schedules. Every worker does, no matter which queues it serves, so that any single worker suffices.
//!
//! The store gives each occurrence to the first worker that asks. A worker learns from its orders when the next one is
//! due, and wakes up then: schedules that are far away cost nothing.

use std::time::Duration;

use crate::journal::Journal;
use domain::values::timestamp::Timestamp;
use store::{FireResult, Store, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    next_at: Option<Timestamp>,
}

impl Scheduler {
    /// Notes when the next schedule is due, as read from the orders.
    pub(crate) fn note(&mut self, next_at: Option<Timestamp>) {
        self.next_at = next_at;
    }

    /// How long until a schedule is due, as of the last orders.
    pub(crate) fn due_in(&self, now: Timestamp) -> Option<Duration> {
        Some(self.next_at?.since(now))
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    /// Enqueues the jobs of due schedules. If there are too many for one call, the rest stays due for the next.
    pub(crate) fn run_once(&mut self, store: &dyn Store, journal: &Journal) -> Result<(), StoreError> {
        let FireResult { jobs, held, next_at } = store.fire_due()?;
        self.next_at = next_at;
        for job in &jobs {
            journal.note(format_args!("schedule fired: {job} enqueued"));
        }
        for (schedule, why) in &held {
            journal.note(format_args!("schedule {schedule} paused: {why}"));
        }
        Ok(())
    }
}
