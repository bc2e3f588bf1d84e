//! What a waiting job waits for, apart from a worker with a free slot.

use crate::job::life::{Life, State};
use crate::values::timestamp::Timestamp;

/// Who paused a queue, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    pub by: String,
    pub reason: Option<String>,
}

/// Everything about a queue that can hold back a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLimits {
    pub paused: Option<(Timestamp, Pause)>,
    pub running: u64,
    pub concurrency: Option<u32>,
    /// When its rate allows the next start, if that is later than now.
    pub next_start_at: Option<Timestamp>,
}

/// Where one reason is enough, it is the least.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// Unfinished jobs that it depends on.
    Jobs {
        count: u32,
    },
    /// Its queue must be resumed.
    PausedQueue(Timestamp, Pause),
    /// The end of its backoff.
    Backoff(Timestamp),
    Scheduled(Timestamp),
    /// Its queue has reached its concurrency limit.
    FullQueue {
        running: u64,
        limit: u32,
    },
    /// The rate limit of its queue allows the next start at this time.
    Rate(Timestamp),
}

impl WaitReason {
    /// Whether the reason lies in the job itself, not in its queue.
    pub fn is_own(&self) -> bool {
        match self {
            Self::Jobs { .. } | Self::Backoff(_) | Self::Scheduled(_) => true,
            Self::PausedQueue(..) | Self::FullQueue { .. } | Self::Rate(_) => false,
        }
    }
}

/// The reasons that lie in the job, then those that lie in its queue. A job that waits without a reason needs only a
/// free slot. `None` if it does not wait.
pub fn wait_reasons(life: &Life, queue: QueueLimits, now: Timestamp) -> Option<Vec<WaitReason>> {
    let mut reasons = Vec::new();
    match life.state {
        State::Pending { blocked_by: count } => {
            reasons.extend((count > 0).then_some(WaitReason::Jobs { count }));
            reasons.extend(life.run_at.filter(|at| *at > now).map(WaitReason::Scheduled));
        }
        State::Failed => reasons.extend((life.due_at > now).then_some(WaitReason::Backoff(life.due_at))),
        State::Processing(_) | State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return None;
        }
    }
    let running = queue.running;
    let full = queue.concurrency.filter(|limit| running >= u64::from(*limit));
    reasons.extend(queue.paused.map(|(since, pause)| WaitReason::PausedQueue(since, pause)));
    reasons.extend(full.map(|limit| WaitReason::FullQueue { running, limit }));
    reasons.extend(queue.next_start_at.map(WaitReason::Rate));
    Some(reasons)
}
