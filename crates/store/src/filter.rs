//! Which jobs to list, and how many.

use domain::job::Job;
use domain::job::life::StateName;
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, JobId, QueueName};
use domain::values::timestamp::Timestamp;

/// A state, or one of the finer cuts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    State(StateName),
    /// Could run now; in the order in which they will be claimed.
    Ready,
    /// Pending, its time not yet come; the soonest first.
    Scheduled,
    /// Pending, waits for another job.
    Blocked,
}

impl Phase {
    pub const ALL: [Self; 9] = [
        Self::State(StateName::Pending),
        Self::State(StateName::Processing),
        Self::State(StateName::Completed),
        Self::State(StateName::Failed),
        Self::State(StateName::Dead),
        Self::State(StateName::Cancelled),
        Self::Ready,
        Self::Scheduled,
        Self::Blocked,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::State(state) => state.name(),
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// Which jobs; what is `None` or empty does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In any of these.
    pub phases: Vec<Phase>,
    pub queue: Option<QueueName>,
    pub tag: Option<String>,
    pub batch: Option<BatchName>,
    /// Last changed before this.
    pub changed_before: Option<Timestamp>,
    pub command: Option<CommandPattern>,
}

impl JobFilter {
    pub fn in_phase(phase: Phase) -> Self {
        Self { phases: vec![phase], ..Self::default() }
    }
}

/// A stretch of the list: newest first, but for a filter with one phase that says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: usize,
    pub after: Option<After>,
}

/// Where a page begins: behind a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// Where it is now. It must be there.
    Job(JobId),
    /// Where it was when it was seen. It may be gone since.
    Seen { number: u64, priority: i32, due_at: Timestamp },
}

impl From<&Job> for After {
    fn from(seen: &Job) -> Self {
        Self::Seen { number: seen.number, priority: seen.priority, due_at: seen.life.due_at }
    }
}
