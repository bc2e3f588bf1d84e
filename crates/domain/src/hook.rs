//! Hooks: what somebody wants to be told of, and how they are told.

mod news;
mod patience;
mod url;

pub use news::{BatchNews, DlqNews, Letter, News, WorkerNews};
pub use patience::{Next, after_failure, given_up_before};
pub use url::{HookUrl, UrlError};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::job::environment::Environment;
use super::job::life::StateName;
use super::text::nearest::nearest;
use super::values::name::QueueName;

/// What can happen that a hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    Success,
    Failure,
    Dead,
    BatchFinished,
    WorkerCrashed,
    DlqAbove,
}

impl HookEvent {
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Failure, Self::Dead, Self::BatchFinished, Self::WorkerCrashed, Self::DlqAbove];

    /// The word for it in SQL, in JSON and in a header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Dead => "dead",
            Self::BatchFinished => "batch_finished",
            Self::WorkerCrashed => "worker_crashed",
            Self::DlqAbove => "dlq_above",
        }
    }
}

impl FromStr for HookEvent {
    type Err = HookError;

    /// `batch-finished` and `batch_finished` are the same event.
    fn from_str(text: &str) -> Result<Self, HookError> {
        let wanted = text.replace('-', "_");
        Self::ALL.into_iter().find(|event| event.name() == wanted).ok_or_else(|| HookError::UnknownEvent {
            typed: text.to_owned(),
            nearest: nearest(&wanted, Self::ALL.map(Self::name)),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    #[error("there is no event `{typed}`")]
    UnknownEvent { typed: String, nearest: Option<&'static str> },
    #[error("{} is not about a queue", .0.name())]
    NotAboutAQueue(HookEvent),
    #[error("dlq_above needs a number of dead jobs")]
    NoThreshold,
    #[error("{} has no number to be above of", .0.name())]
    NeedlessThreshold(HookEvent),
    #[error("a number of dead jobs is at most {MAX_THRESHOLD}")]
    HighThreshold,
    #[error("the command is blank")]
    BlankCommand,
    #[error("the command contains a NUL byte")]
    NulInCommand,
    #[error("the command is longer than {MAX_COMMAND_BYTES} bytes")]
    LongCommand,
    #[error("the secret is empty")]
    EmptySecret,
    #[error("the secret is longer than {MAX_SECRET_BYTES} bytes")]
    LongSecret,
    #[error(transparent)]
    Url(#[from] UrlError),
}

/// The kernel takes no longer argument.
const MAX_COMMAND_BYTES: usize = 131_071;
const MAX_SECRET_BYTES: usize = 4_096;
/// A store keeps no larger number.
const MAX_THRESHOLD: u64 = i64::MAX.unsigned_abs();

/// How a job can end an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobTurn {
    /// It is completed.
    Success,
    /// An attempt ended badly, and there will be another.
    Failure,
    /// It is dead.
    Dead,
}

impl JobTurn {
    /// The turn that an attempt has taken whose job is now in this state.
    pub fn of(state: StateName) -> Option<Self> {
        match state {
            StateName::Completed => Some(Self::Success),
            StateName::Failed => Some(Self::Failure),
            StateName::Dead => Some(Self::Dead),
            StateName::Pending | StateName::Processing | StateName::Cancelled => None,
        }
    }

    pub fn event(self) -> HookEvent {
        match self {
            Self::Success => HookEvent::Success,
            Self::Failure => HookEvent::Failure,
            Self::Dead => HookEvent::Dead,
        }
    }
}

/// When a hook is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    Job {
        turn: JobTurn,
        /// `None`: in all queues.
        queue: Option<QueueName>,
    },
    BatchFinished,
    WorkerCrashed,
    /// The number of dead jobs has become larger than this.
    DlqAbove {
        threshold: u64,
        queue: Option<QueueName>,
    },
}

impl Trigger {
    /// Puts a trigger together, if its parts go together.
    pub fn new(
        event: HookEvent,
        queue: Option<QueueName>,
        threshold: Option<u64>,
    ) -> Result<Self, HookError> {
        if threshold.is_some() && event != HookEvent::DlqAbove {
            return Err(HookError::NeedlessThreshold(event));
        }
        if threshold.is_some_and(|threshold| threshold > MAX_THRESHOLD) {
            return Err(HookError::HighThreshold);
        }
        let job = |turn, queue| Ok(Self::Job { turn, queue });
        match (event, queue) {
            (HookEvent::Success, queue) => job(JobTurn::Success, queue),
            (HookEvent::Failure, queue) => job(JobTurn::Failure, queue),
            (HookEvent::Dead, queue) => job(JobTurn::Dead, queue),
            (HookEvent::BatchFinished | HookEvent::WorkerCrashed, Some(_)) => {
                Err(HookError::NotAboutAQueue(event))
            }
            (HookEvent::BatchFinished, None) => Ok(Self::BatchFinished),
            (HookEvent::WorkerCrashed, None) => Ok(Self::WorkerCrashed),
            (HookEvent::DlqAbove, queue) => {
                Ok(Self::DlqAbove { threshold: threshold.ok_or(HookError::NoThreshold)?, queue })
            }
        }
    }

    pub fn event(&self) -> HookEvent {
        match self {
            Self::Job { turn, .. } => turn.event(),
            Self::BatchFinished => HookEvent::BatchFinished,
            Self::WorkerCrashed => HookEvent::WorkerCrashed,
            Self::DlqAbove { .. } => HookEvent::DlqAbove,
        }
    }

    pub fn queue(&self) -> Option<&QueueName> {
        match self {
            Self::Job { queue, .. } | Self::DlqAbove { queue, .. } => queue.as_ref(),
            Self::BatchFinished | Self::WorkerCrashed => None,
        }
    }

    pub fn threshold(&self) -> Option<u64> {
        match self {
            Self::DlqAbove { threshold, .. } => Some(*threshold),
            Self::Job { .. } | Self::BatchFinished | Self::WorkerCrashed => None,
        }
    }
}

/// How a hook is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command, which gets the event on its standard input.
    Command {
        line: String,
        cwd: Option<String>,
        /// That of whoever added the hook; without one the worker's is taken.
        environment: Option<Arc<Environment>>,
    },
    /// An address, to which the event is posted.
    Url { url: HookUrl, secret: Option<Secret> },
}

/// A command line that can be started.
pub fn check_command(line: String) -> Result<String, HookError> {
    if line.trim().is_empty() {
        return Err(HookError::BlankCommand);
    }
    if line.contains('\0') {
        return Err(HookError::NulInCommand);
    }
    if line.len() > MAX_COMMAND_BYTES {
        return Err(HookError::LongCommand);
    }
    Ok(line)
}

/// What letters are signed with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Result<Self, HookError> {
        if text.is_empty() {
            return Err(HookError::EmptySecret);
        }
        if text.len() > MAX_SECRET_BYTES {
            return Err(HookError::LongSecret);
        }
        Ok(Self(text))
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail() -> QueueName {
        "mail".parse().expect("a name")
    }

    #[test]
    fn parts_that_do_not_go_together_are_refused() {
        for (event, queue, threshold, wrong) in [
            (HookEvent::Dead, None, None, None),
            (HookEvent::Success, Some(mail()), None, None),
            (HookEvent::Failure, None, Some(1), Some(HookError::NeedlessThreshold(HookEvent::Failure))),
            (HookEvent::DlqAbove, Some(mail()), Some(0), None),
            (HookEvent::DlqAbove, None, None, Some(HookError::NoThreshold)),
            (HookEvent::DlqAbove, None, Some(MAX_THRESHOLD), None),
            (HookEvent::DlqAbove, None, Some(MAX_THRESHOLD + 1), Some(HookError::HighThreshold)),
            (HookEvent::WorkerCrashed, None, None, None),
            (
                HookEvent::WorkerCrashed,
                Some(mail()),
                None,
                Some(HookError::NotAboutAQueue(HookEvent::WorkerCrashed)),
            ),
            (
                HookEvent::BatchFinished,
                Some(mail()),
                None,
                Some(HookError::NotAboutAQueue(HookEvent::BatchFinished)),
            ),
        ] {
            let trigger = Trigger::new(event, queue.clone(), threshold);
            if let Ok(trigger) = &trigger {
                assert_eq!(
                    (trigger.event(), trigger.queue(), trigger.threshold()),
                    (event, queue.as_ref(), threshold)
                );
            }
            assert_eq!(trigger.err(), wrong, "{event:?}");
        }
    }

    #[test]
    fn an_event_is_written_with_either_dash_and_a_slip_is_caught() {
        for event in HookEvent::ALL {
            assert_eq!(event.name().parse(), Ok(event));
            assert_eq!(event.name().replace('_', "-").parse(), Ok(event));
        }
        let Err(HookError::UnknownEvent { nearest, .. }) = "worker-crash".parse::<HookEvent>() else {
            panic!("there is no such event")
        };
        assert_eq!(nearest, Some("worker_crashed"));
    }

    #[test]
    fn a_secret_does_not_show() {
        let secret = Secret::new("tell nobody".to_owned()).expect("it is not empty");
        assert!(!format!("{secret:?}").contains("nobody"));
        assert_eq!(Secret::new(String::new()), Err(HookError::EmptySecret));
    }
}
