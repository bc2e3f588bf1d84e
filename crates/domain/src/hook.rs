//! Hooks: which events trigger them, and how the events are delivered.

mod events;
pub(crate) mod payload;
pub(crate) mod retry;
mod url;
pub mod variables;

pub use events::HookEvents;
pub use payload::{Payload, Subject};
pub use retry::{expired_before, retry_at};
pub use url::HookUrl;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::job::environment::Environment;
use super::job::life::StateName;
use super::job::spec::has_first_word;
use super::text::nearest::nearest;
use super::values::name::QueueName;
use crate::job::spec::MAX_COMMAND_BYTES;

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
    /// The event of an attempt that left its job in this state.
    pub fn of(state: StateName) -> Option<Self> {
        match state {
            StateName::Completed => Some(Self::Success),
            StateName::Failed => Some(Self::Failure),
            StateName::Dead => Some(Self::Dead),
            StateName::Pending | StateName::Processing | StateName::Cancelled => None,
        }
    }

    /// The name used in flags, help and messages.
    pub fn name_in_flags(self) -> String {
        self.name().replace('_', "-")
    }
}

impl FromStr for HookEvent {
    type Err = HookError;

    /// `batch-finished` and `batch_finished` are the same event.
    fn from_str(text: &str) -> Result<Self, HookError> {
        Self::from_name(&text.replace('-', "_")).ok_or_else(|| HookError::UnknownEvent {
            typed: text.to_owned(),
            nearest: nearest(text, Self::ALL.map(Self::name)).map(|name| name.replace('_', "-")),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    #[error("unknown event `{typed}`")]
    UnknownEvent { typed: String, nearest: Option<String> },
    #[error("event {} does not take a queue", .0.name_in_flags())]
    UnexpectedQueue(HookEvent),
    #[error("event dlq-above needs a threshold: a number of dead jobs")]
    NoThreshold,
    #[error("event {} does not take a threshold; only dlq-above does", .0.name_in_flags())]
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
    #[error("the URL must begin with http:// or https://")]
    UrlScheme,
    #[error("the URL has no host")]
    NoUrlHost,
    #[error(
        "the URL must not contain a user or a password because it is displayed; sign with a secret instead"
    )]
    UrlPassword,
    #[error("the URL must contain only visible ASCII characters; encode others as %XX")]
    UrlCharacter,
    #[error("the URL is longer than {} bytes", url::MAX_URL_BYTES)]
    LongUrl,
}

const MAX_SECRET_BYTES: usize = 4_096;
/// The largest number that a store can keep.
const MAX_THRESHOLD: u64 = i64::MAX.unsigned_abs();

/// The condition that triggers a hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Trigger {
    #[serde(rename = "event")]
    pub events: HookEvents,
    /// `None` for all queues.
    pub queue: Option<QueueName>,
    /// For `DlqAbove`, which needs one: it fires when the number of dead jobs rises above it.
    #[serde(rename = "above")]
    pub threshold: Option<u64>,
}

impl Trigger {
    /// Combines events with their parameters, if the events take them.
    pub fn new(
        events: impl Into<HookEvents>,
        queue: Option<QueueName>,
        threshold: Option<u64>,
    ) -> Result<Self, HookError> {
        let events = events.into();
        let takes_no_queue = |event: &HookEvent| match event {
            HookEvent::BatchFinished | HookEvent::WorkerCrashed => true,
            HookEvent::Success | HookEvent::Failure | HookEvent::Dead | HookEvent::DlqAbove => false,
        };
        let without_queue = events.iter().find(takes_no_queue).filter(|_| queue.is_some());
        match (threshold, events.contains(HookEvent::DlqAbove), without_queue) {
            (Some(_), false, _) => Err(HookError::UnexpectedThreshold(events.first())),
            (Some(threshold), true, _) if threshold > MAX_THRESHOLD => Err(HookError::HighThreshold),
            (None, true, _) => Err(HookError::NoThreshold),
            (Some(_) | None, _, Some(event)) => Err(HookError::UnexpectedQueue(event)),
            (Some(_) | None, _, None) => Ok(Self { events, queue, threshold }),
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

/// Without the environment; the secret only as whether there is one.
impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (command, cwd, url, secret) = match self {
            Self::Command { line, cwd, .. } => (Some(line), cwd.as_ref(), None, false),
            Self::Url { url, secret } => (None, None, Some(url.as_str()), secret.is_some()),
        };
        let mut object = serializer.serialize_struct("Target", 4)?;
        object.serialize_field("command", &command)?;
        object.serialize_field("cwd", &cwd)?;
        object.serialize_field("url", &url)?;
        object.serialize_field("secret", &secret)?;
        object.end()
    }
}

/// Accepts a command line that can be run.
pub fn check_command(line: String) -> Result<String, HookError> {
    if !has_first_word(&line) {
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
                    (&trigger.events, trigger.queue.as_ref(), trigger.threshold),
                    (&event.into(), queue.as_ref(), threshold)
                );
            }
            assert_eq!(trigger.err(), error, "{event:?}");
        }
    }

    #[test]
    fn each_of_several_events_must_take_the_parameters() {
        let trigger = |events: &str, queue: bool, threshold| {
            let events: HookEvents = events.parse().expect("events");
            Trigger::new(events, queue.then(mail), threshold).map(|trigger| trigger.events.to_string())
        };
        assert_eq!(trigger("dead,success", true, None), Ok("success,dead".to_owned()));
        assert_eq!(trigger("dead,dlq-above", true, Some(3)), Ok("dead,dlq_above".to_owned()));
        assert_eq!(trigger("dead,dlq-above", false, None), Err(HookError::NoThreshold));
        let refused = HookError::UnexpectedQueue(HookEvent::BatchFinished);
        assert_eq!(trigger("dead,batch-finished", true, None), Err(refused));
        let refused = HookError::UnexpectedThreshold(HookEvent::Success);
        assert_eq!(trigger("success,dead", false, Some(1)), Err(refused));
    }

    #[test]
    fn an_event_is_parsed_with_dashes_or_underscores_and_a_typo_suggests_the_nearest() {
        for event in HookEvent::ALL {
            assert_eq!(event.name().parse(), Ok(event));
            assert_eq!(
                serde_json::to_value(event).ok().as_ref().and_then(|json| json.as_str()),
                Some(event.name())
            );
            assert_eq!(event.name_in_flags().parse(), Ok(event));
        }
        let Err(HookError::UnknownEvent { nearest, .. }) = "worker-crash".parse::<HookEvent>() else {
            panic!("worker-crash is not an event")
        };
        assert_eq!(nearest.as_deref(), Some("worker-crashed"));
    }

    #[test]
    fn a_secret_is_shown_neither_by_debug_nor_in_json() {
        let secret = Secret::new("hidden".to_owned()).expect("valid secret");
        assert!(!format!("{secret:?}").contains("hidden"));
        let url = "https://example.org/".parse().expect("valid URL");
        let environment = Some(Arc::new(Environment::from_bytes(b"A=hidden\0")));
        for (target, json) in [
            (
                Target::Url { url, secret: Some(secret) },
                r#"{"command":null,"cwd":null,"url":"https://example.org/","secret":true}"#,
            ),
            (
                Target::Command { line: "cat".to_owned(), cwd: Some("/".to_owned()), environment },
                r#"{"command":"cat","cwd":"/","url":null,"secret":false}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&target).ok().as_deref(), Some(json));
        }
        assert_eq!(Secret::new(String::new()), Err(HookError::EmptySecret));
    }
}
