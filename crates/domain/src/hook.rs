//! Hooks: which events trigger them, and how the events are delivered.

pub(crate) mod payload;
pub(crate) mod retry;
mod url;

pub use payload::{BatchPayload, DlqPayload, Payload, Subject, WorkerPayload};
pub use retry::{NextStep, after_failure, expired_before};
pub use url::{HookUrl, UrlError};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::job::environment::Environment;
use super::job::life::StateName;
use super::text::nearest::nearest;
use super::values::name::QueueName;

crate::named_enum! {
    /// An event that can trigger a hook.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum HookEvent {
        Success = "success",
        Failure = "failure",
        Dead = "dead",
        BatchFinished = "batch_finished",
        WorkerCrashed = "worker_crashed",
        DlqAbove = "dlq_above",
    }
}

impl HookEvent {
    /// The name used in flags, help and messages.
    pub fn name_in_flags(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Dead => "dead",
            Self::BatchFinished => "batch-finished",
            Self::WorkerCrashed => "worker-crashed",
            Self::DlqAbove => "dlq-above",
        }
    }
}

impl FromStr for HookEvent {
    type Err = HookError;

    /// `batch-finished` and `batch_finished` are the same event.
    fn from_str(text: &str) -> Result<Self, HookError> {
        let name = text.replace('-', "_");
        Self::from_name(&name).ok_or_else(|| HookError::UnknownEvent {
            typed: text.to_owned(),
            nearest: nearest(&name.replace('_', "-"), Self::ALL.map(Self::name_in_flags)),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    #[error("unknown event `{typed}`")]
    UnknownEvent { typed: String, nearest: Option<&'static str> },
    #[error("event {} does not take a queue", .0.name_in_flags())]
    UnexpectedQueue(HookEvent),
    #[error("event dlq-above needs a threshold: a number of dead jobs")]
    NoThreshold,
    #[error("event {} does not take a threshold", .0.name_in_flags())]
    UnexpectedThreshold(HookEvent),
    #[error("the threshold must be at most {MAX_THRESHOLD}")]
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

/// The longest argument that the kernel accepts.
const MAX_COMMAND_BYTES: usize = 131_071;
const MAX_SECRET_BYTES: usize = 4_096;
/// The largest number that a store can keep.
const MAX_THRESHOLD: u64 = i64::MAX.unsigned_abs();

/// The result of a settled attempt for its job, as far as hooks are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// The job is completed.
    Success,
    /// The attempt failed, and the job will be retried.
    Failure,
    /// The job is dead.
    Dead,
}

impl JobResult {
    /// The result of an attempt that left its job in this state.
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

/// The condition that triggers a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    Job {
        result: JobResult,
        /// `None` for all queues.
        queue: Option<QueueName>,
    },
    BatchFinished,
    WorkerCrashed,
    /// The number of dead jobs has risen above the threshold.
    DlqAbove {
        threshold: u64,
        queue: Option<QueueName>,
    },
}

impl Trigger {
    /// Combines an event with its parameters, if the event takes them.
    pub fn new(
        event: HookEvent,
        queue: Option<QueueName>,
        threshold: Option<u64>,
    ) -> Result<Self, HookError> {
        if threshold.is_some() && event != HookEvent::DlqAbove {
            return Err(HookError::UnexpectedThreshold(event));
        }
        if threshold.is_some_and(|threshold| threshold > MAX_THRESHOLD) {
            return Err(HookError::HighThreshold);
        }
        let job = |result, queue| Ok(Self::Job { result, queue });
        match (event, queue) {
            (HookEvent::Success, queue) => job(JobResult::Success, queue),
            (HookEvent::Failure, queue) => job(JobResult::Failure, queue),
            (HookEvent::Dead, queue) => job(JobResult::Dead, queue),
            (HookEvent::BatchFinished | HookEvent::WorkerCrashed, Some(_)) => {
                Err(HookError::UnexpectedQueue(event))
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
            Self::Job { result, .. } => result.event(),
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

/// Where the events of a hook are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A command that reads the event from its standard input.
    Command {
        line: String,
        cwd: Option<String>,
        /// The environment in which the hook was added. Without one the command gets the worker's.
        environment: Option<Arc<Environment>>,
    },
    /// A URL to which the event is posted.
    Url { url: HookUrl, secret: Option<Secret> },
}

/// Accepts a command line that can be run.
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

/// The key that signs payloads. It is never shown.
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
        "mail".parse().expect("valid queue name")
    }

    #[test]
    fn an_event_is_refused_with_parameters_that_it_does_not_take() {
        for (event, queue, threshold, error) in [
            (HookEvent::Dead, None, None, None),
            (HookEvent::Success, Some(mail()), None, None),
            (HookEvent::Failure, None, Some(1), Some(HookError::UnexpectedThreshold(HookEvent::Failure))),
            (HookEvent::DlqAbove, Some(mail()), Some(0), None),
            (HookEvent::DlqAbove, None, None, Some(HookError::NoThreshold)),
            (HookEvent::DlqAbove, None, Some(MAX_THRESHOLD), None),
            (HookEvent::DlqAbove, None, Some(MAX_THRESHOLD + 1), Some(HookError::HighThreshold)),
            (HookEvent::WorkerCrashed, None, None, None),
            (
                HookEvent::WorkerCrashed,
                Some(mail()),
                None,
                Some(HookError::UnexpectedQueue(HookEvent::WorkerCrashed)),
            ),
            (
                HookEvent::BatchFinished,
                Some(mail()),
                None,
                Some(HookError::UnexpectedQueue(HookEvent::BatchFinished)),
            ),
        ] {
            let trigger = Trigger::new(event, queue.clone(), threshold);
            if let Ok(trigger) = &trigger {
                assert_eq!(
                    (trigger.event(), trigger.queue(), trigger.threshold()),
                    (event, queue.as_ref(), threshold)
                );
            }
            assert_eq!(trigger.err(), error, "{event:?}");
        }
    }

    #[test]
    fn an_event_is_parsed_with_dashes_or_underscores_and_a_typo_suggests_the_nearest() {
        for event in HookEvent::ALL {
            assert_eq!(event.name().parse(), Ok(event));
            assert_eq!(event.name_in_flags(), event.name().replace('_', "-"));
            assert_eq!(event.name_in_flags().parse(), Ok(event));
        }
        let Err(HookError::UnknownEvent { nearest, .. }) = "worker-crash".parse::<HookEvent>() else {
            panic!("worker-crash is not an event")
        };
        assert_eq!(nearest, Some("worker-crashed"));
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        let secret = Secret::new("hidden".to_owned()).expect("valid secret");
        assert!(!format!("{secret:?}").contains("hidden"));
        assert_eq!(Secret::new(String::new()), Err(HookError::EmptySecret));
    }
}
