//! Other jobs that explain the state of a job: the dependency that it was cancelled with, and the jobs that occupy the
//! slots.

use std::fmt;

use crate::job::life::StateName;
use crate::values::name::{JobId, QueueName};
use crate::values::span::rough_span;
use crate::values::timestamp::Timestamp;

/// At most this many jobs in slots are named.
const MAX_BUSY_NAMED: usize = 3;

/// A dead or cancelled job, on account of which others were cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedDependency {
    pub id: JobId,
    /// How people name it.
    pub handle: String,
    pub state: StateName,
    /// Its error, or why it was cancelled.
    pub why: Option<String>,
}

/// `build is dead (exit code 3: no such file)`
impl fmt::Display for FailedDependency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} is {}", self.handle, self.state.name())?;
        self.why.as_ref().map_or(Ok(()), |why| write!(out, " ({why})"))
    }
}

/// A running job that occupies a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusySlot {
    pub id: JobId,
    /// How people name the job.
    pub handle: String,
    pub queue: QueueName,
    pub since: Timestamp,
    pub is_paused: bool,
}

/// `both slots are busy: 41 for 12s, 42 for 3s`; the jobs are the ones that run longest.
pub(super) fn all_busy(slots: u64, jobs: &[BusySlot], now: Timestamp) -> String {
    let slots = match slots {
        1 => "the only slot is busy".to_owned(),
        2 => "both slots are busy".to_owned(),
        slots => format!("all {slots} slots are busy"),
    };
    let named = jobs.iter().take(MAX_BUSY_NAMED);
    let describe = |job: &BusySlot| {
        let paused = if job.is_paused { " (paused)" } else { "" };
        format!("{} for {}{paused}", job.handle, rough_span(now.since(job.since)))
    };
    let mut parts: Vec<String> = named.map(describe).collect();
    if jobs.len() > MAX_BUSY_NAMED {
        parts.push(format!("and {} more", jobs.len() - MAX_BUSY_NAMED));
    }
    if parts.is_empty() { slots } else { format!("{slots}: {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn busy(number: u64) -> BusySlot {
        let id = format!("job{number}").parse().expect("valid id");
        let since = NOW.saturating_sub(Duration::from_secs(number));
        let queue = QueueName::default_queue();
        BusySlot { id, handle: number.to_string(), queue, since, is_paused: number == 43 }
    }

    #[test]
    fn the_jobs_in_the_slots_are_named_up_to_a_few() {
        assert_eq!(all_busy(1, &[], NOW), "the only slot is busy");
        assert_eq!(all_busy(1, &[busy(7)], NOW), "the only slot is busy: 7 for 7s");
        assert_eq!(all_busy(2, &[busy(41), busy(42)], NOW), "both slots are busy: 41 for 41s, 42 for 42s");
        assert_eq!(all_busy(1, &[busy(43)], NOW), "the only slot is busy: 43 for 43s (paused)");
        let many: Vec<BusySlot> = (1..=5).map(busy).collect();
        let message = "all 5 slots are busy: 1 for 1s, 2 for 2s, 3 for 3s, and 2 more";
        assert_eq!(all_busy(5, &many, NOW), message);
    }

    #[test]
    fn a_failed_dependency_is_named_with_its_error() {
        let id: JobId = "build".parse().expect("valid id");
        let mut failed = FailedDependency {
            handle: id.to_string(),
            id,
            state: StateName::Dead,
            why: Some("exit code 3: boom".to_owned()),
        };
        assert_eq!(failed.to_string(), "build is dead (exit code 3: boom)");
        (failed.state, failed.why) = (StateName::Cancelled, None);
        assert_eq!(failed.to_string(), "build is cancelled");
    }
}
