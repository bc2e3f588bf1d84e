//! Which jobs to list, and how many.

use std::fmt;
use std::str::FromStr;

use domain::job::Job;
use domain::job::cause::CauseId;
use domain::job::life::{CancelReason, DeadReason, StateName};
use domain::text::pattern::CommandPattern;
use domain::values::name::{BatchName, JobId, QueueName, ScheduleName, WorkerId};
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
    /// A run of this schedule.
    pub schedule: Option<ScheduleName>,
    /// This worker runs it.
    pub worker: Option<WorkerId>,
    /// Its id begins like this.
    pub id_prefix: Option<String>,
    /// It is dead and died of this.
    pub cause: Option<CauseId>,
    /// It is dead or cancelled for this reason.
    pub reason: Option<EndReason>,
    /// The exit code of its last attempt.
    pub exit_code: Option<i32>,
    /// Last changed before this.
    pub changed_before: Option<Timestamp>,
    /// Last changed then or later.
    pub changed_after: Option<Timestamp>,
    pub command: Option<CommandPattern>,
}

/// Why a job is dead or cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Dead(DeadReason),
    Cancelled(CancelReason),
}

impl EndReason {
    pub fn all() -> impl Iterator<Item = Self> {
        let dead = DeadReason::ALL.into_iter().map(Self::Dead);
        dead.chain(CancelReason::ALL.into_iter().map(Self::Cancelled))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Dead(reason) => reason.name(),
            Self::Cancelled(reason) => reason.name(),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|reason| reason.name() == name)
    }

    /// The state of the jobs with this reason.
    pub fn state(self) -> StateName {
        match self {
            Self::Dead(_) => StateName::Dead,
            Self::Cancelled(_) => StateName::Cancelled,
        }
    }
}

impl JobFilter {
    pub fn in_phase(phase: Phase) -> Self {
        Self { phases: vec![phase], ..Self::default() }
    }

    /// The states that it names, if it names nothing else but a queue: the store has counted these jobs.
    pub(crate) fn counted_states(&self) -> Option<Vec<StateName>> {
        let plain = Self { phases: self.phases.clone(), queue: self.queue.clone(), ..Self::default() };
        if *self != plain {
            return None;
        }
        let state = |phase: &Phase| match phase {
            Phase::State(state) => Some(*state),
            Phase::Ready | Phase::Scheduled | Phase::Blocked | Phase::Paused => None,
        };
        if self.phases.is_empty() {
            return Some(StateName::ALL.to_vec());
        }
        self.phases.iter().map(state).collect()
    }
}

domain::named_enum! {
    /// The orders in which jobs can be listed: those that an index has.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Order {
        /// The job that was enqueued last comes first.
        #[default]
        Newest = "newest",
        Oldest = "oldest",
        /// Ready jobs as workers take them.
        Claim = "claim",
        /// Scheduled jobs, the one that is due soonest first.
        Soonest = "soonest",
        /// Running jobs, the one that started first comes first.
        LongestRunning = "longest_running",
        /// Jobs with a failed attempt, the one that failed last comes first.
        LastFailed = "last_failed",
    }
}

impl Order {
    /// The only phase whose jobs have this order; `None` if all have.
    pub fn phase(self) -> Option<Phase> {
        match self {
            Self::Newest | Self::Oldest | Self::LastFailed => None,
            Self::Claim => Some(Phase::Ready),
            Self::Soonest => Some(Phase::Scheduled),
            Self::LongestRunning => Some(Phase::State(StateName::Processing)),
        }
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
    /// The position at which it was listed. The job may have been removed since. The time is that by which its list is
    /// sorted.
    Position { number: u64, priority: i32, due_at: Timestamp },
}

/// No id begins with it.
const POSITION_MARK: char = '~';

/// As a text that can be part of a URL.
impl fmt::Display for PageStart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => id.fmt(out),
            Self::Position { number, priority, due_at } => {
                write!(out, "{POSITION_MARK}{number}.{priority}.{}", due_at.as_millis())
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the place of a job in a list")]
pub struct PageStartError(String);

impl FromStr for PageStart {
    type Err = PageStartError;

    fn from_str(text: &str) -> Result<Self, PageStartError> {
        let refused = || PageStartError(text.to_owned());
        let Some(position) = text.strip_prefix(POSITION_MARK) else {
            return text.parse().map(Self::Job).map_err(|_| refused());
        };
        let parts: Vec<&str> = position.split('.').collect();
        let [number, priority, millis] = parts[..] else {
            return Err(refused());
        };
        let millis: i64 = millis.parse().map_err(|_| refused())?;
        Ok(Self::Position {
            number: number.parse().map_err(|_| refused())?,
            priority: priority.parse().map_err(|_| refused())?,
            due_at: Timestamp::from_millis(millis),
        })
    }
}

impl From<&Job> for PageStart {
    fn from(job: &Job) -> Self {
        Self::Position { number: job.number, priority: job.priority, due_at: job.life.due_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_as_text() {
        let at = |number, priority, millis| PageStart::Position {
            number,
            priority,
            due_at: Timestamp::from_millis(millis),
        };
        let job: JobId = "a.1:b".parse().expect("an id");
        for start in [at(0, 0, 0), at(u64::MAX, i32::MIN, i64::MAX), at(7, -1, -5), PageStart::Job(job)] {
            assert_eq!(start.to_string().parse(), Ok(start));
        }
        for text in
            ["", "~", "~1", "~1.2", "~1.2.3.4", "~-1.2.3", "~x.2.3", "../x", "~1.2.99999999999999999999"]
        {
            let refused: Result<PageStart, _> = text.parse();
            assert_eq!(refused, Err(PageStartError(text.to_owned())));
        }
    }

    #[test]
    fn only_states_and_queues_are_counted() {
        let dead = JobFilter::in_phase(Phase::State(StateName::Dead));
        assert_eq!(dead.counted_states(), Some(vec![StateName::Dead]));
        assert_eq!(JobFilter::default().counted_states(), Some(StateName::ALL.to_vec()));
        let queue: QueueName = "mail".parse().expect("a name");
        assert!(JobFilter { queue: Some(queue), ..dead.clone() }.counted_states().is_some());
        assert_eq!(JobFilter::in_phase(Phase::Ready).counted_states(), None);
        assert_eq!(JobFilter { exit_code: Some(1), ..dead }.counted_states(), None);
    }

    #[test]
    fn every_reason_has_its_state() {
        for reason in EndReason::all() {
            assert_eq!(EndReason::from_name(reason.name()), Some(reason));
        }
        assert_eq!(EndReason::Dead(DeadReason::CrashLimit).state(), StateName::Dead);
    }
}
