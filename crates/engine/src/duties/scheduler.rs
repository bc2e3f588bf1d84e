//! Fires schedules. Every worker does, no matter which queues it serves, so that any single worker suffices.
//!
//! The store gives each occurrence to the first worker that asks. A worker learns from its orders when the next one is
//! due, and wakes up then: schedules that are far away cost nothing.

use crate::journal::Journal;
use domain::values::timestamp::Timestamp;
use store::{FireResult, Store, StoreError};

/// Enqueues the jobs of due schedules; returns when the next one is due. If there are too many for one call, the rest
/// stays due for the next.
pub(crate) fn run_once(store: &dyn Store, journal: &Journal) -> Result<Option<Timestamp>, StoreError> {
    let FireResult { jobs, held, next_at } = store.fire_due()?;
    for job in &jobs {
        journal.note(format_args!("schedule fired: {job} enqueued"));
    }
    for (schedule, why) in &held {
        journal.note(format_args!("schedule {schedule} paused: {why}"));
    }
    Ok(next_at)
}
