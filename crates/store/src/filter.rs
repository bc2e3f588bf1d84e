//! Which jobs to list, and how many.

use domain::job::Job;
use domain::job::life::StateName;
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, JobId, QueueName};
use domain::values::timestamp::Timestamp;

/// A state, or a subset of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    State(StateName),
    /// Can run now; listed in claim order.
    Ready,
    /// Pending and not yet due; listed by due time, the soonest first.
    Scheduled,
    /// Pending and waiting for another job.
    Blocked,
    /// Processing, but stopped until a user resumes it.
    Paused,
}

impl Phase {
    pub const ALL: [Self; 10] = [
        Self::State(StateName::Pending),
        Self::State(StateName::Processing),
        Self::State(StateName::Completed),
        Self::State(StateName::Failed),
        Self::State(StateName::Dead),
        Self::State(StateName::Cancelled),
        Self::Ready,
        Self::Scheduled,
        Self::Blocked,
        Self::Paused,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::State(state) => state.name(),
            Self::Ready => "ready",
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Paused => "paused",
        }
    }

    pub fn state(self) -> StateName {
        match self {
            Self::State(state) => state,
            Self::Ready | Self::Scheduled | Self::Blocked => StateName::Pending,
            Self::Paused => StateName::Processing,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// Selects jobs. A field that is `None` or empty matches every job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// The job is in any of these.
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

/// A page of a list: newest first, unless the filter has a single phase with an order of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: usize,
    pub after: Option<PageStart>,
}

/// The job after which a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// Its current position. The job must exist.
    Job(JobId),
    /// The position at which it was listed. The job may have been removed since.
    Position { number: u64, priority: i32, due_at: Timestamp },
}

impl From<&Job> for PageStart {
    fn from(job: &Job) -> Self {
        Self::Position { number: job.number, priority: job.priority, due_at: job.life.due_at }
    }
}
