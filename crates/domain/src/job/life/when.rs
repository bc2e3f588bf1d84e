//! What people want to know first about the time of a job.

use super::{Lease, State};
use crate::job::Job;
use crate::text::counts::jobs;
use crate::values::clock::Clock;

/// The time that a job waits for, or how long it has been in its state.
pub fn when(job: &Job, clock: &Clock) -> String {
    let (due_at, now) = (job.life.due_at, clock.now);
    match &job.life.state {
        State::Pending { blocked_by: 0 } if due_at > now => clock.until(due_at),
        State::Pending { blocked_by: 0 } => clock.ago(job.created_at),
        State::Pending { blocked_by } => format!("waits for {}", jobs(u64::from(*blocked_by))),
        State::Processing(Lease { paused_at: Some(since), .. }) => {
            format!("paused since {}", clock.time(*since))
        }
        State::Processing(lease) => format!("for {}", clock.elapsed(lease.started_at)),
        State::Failed if due_at > now => format!("retry in {}", clock.left(due_at)),
        State::Failed => "retry due".to_owned(),
        State::Completed { finished_at }
        | State::Dead { finished_at, .. }
        | State::Cancelled { finished_at, .. } => clock.ago(*finished_at),
    }
}
