//! What the user orders, done by a thread of its own: the screen never waits for the store.

mod command_line;
mod perform;
mod running_line;

pub(crate) use self::command_line::{is_endless, is_reading, split_words};
pub(crate) use self::perform::{Actor, ActorOptions};

use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName, ScheduleName};
use ops::jobs::change::Verb;
use ops::jobs::list::filter_text::FilterText;

/// Why an order is refused with `--read-only`.
const NOTHING_IS_CHANGED: &str = "--read-only: nothing is changed";

/// An order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Changes these jobs.
    Jobs {
        verb: Verb,
        ids: Vec<JobId>,
    },
    /// Counts the jobs that a change of all that match would reach.
    Count {
        verb: Verb,
        filter: FilterText,
    },
    /// Changes all jobs that match.
    Matching {
        verb: Verb,
        filter: FilterText,
    },
    PauseQueue(QueueName),
    ResumeQueue(QueueName),
    /// `None` removes the limit.
    SetConcurrency(QueueName, Option<u32>),
    PauseSchedule(ScheduleName),
    ResumeSchedule(ScheduleName),
    Explain(JobId),
    Graph(JobId),
}

impl Action {
    /// Whether it changes nothing.
    pub(crate) fn is_reading(&self) -> bool {
        match self {
            Self::Count { .. } | Self::Explain(_) | Self::Graph(_) => true,
            Self::Jobs { .. }
            | Self::Matching { .. }
            | Self::PauseQueue(_)
            | Self::ResumeQueue(_)
            | Self::SetConcurrency(..)
            | Self::PauseSchedule(_)
            | Self::ResumeSchedule(_) => false,
        }
    }
}

/// How an order ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ActionResult {
    /// A line for the footer, and the command that does the same.
    Done {
        what: String,
        command: Option<String>,
    },
    Failed(String),
    /// The answer to [`Action::Count`].
    Counted {
        verb: Verb,
        filter: FilterText,
        count: u64,
        is_exact: bool,
        by_state: Vec<(StateName, u64)>,
    },
    /// A text to read.
    Text {
        title: String,
        lines: Vec<String>,
    },
}

/// The word for a verb on the command line.
pub(crate) fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Cancel { .. } => "cancel",
        Verb::Pause => "pause",
        Verb::Resume => "resume",
        Verb::Retry | Verb::RetryInOrder => "retry",
        Verb::Remove => "remove",
    }
}
