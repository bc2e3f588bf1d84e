//! The fields of a job that few jobs set, and their stored form: one JSON object, so that the other jobs pay nothing
//! for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OnDependencyFailure;
use super::backoff::BackoffChoice;
use super::limits::Limits;
use super::retry_rules::{ExitCodes, RetryRules};
use super::trace::TraceContext;
use super::unique::UniqueFor;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobOptions {
    #[serde(skip_serializing_if = "is_default")]
    pub name: Option<String>,
    #[serde(with = "stored_backoff", skip_serializing_if = "is_default")]
    pub backoff: Option<BackoffChoice>,
    /// Added to the environment.
    #[serde(skip_serializing_if = "is_default")]
    pub env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_default")]
    pub run_on_dependency_failure: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub unique_for: UniqueFor,
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Limits,
    #[serde(skip_serializing_if = "is_default")]
    pub retry_on: Option<ExitCodes>,
    #[serde(skip_serializing_if = "is_default")]
    pub no_retry_on: Option<ExitCodes>,
    /// The attempt whose failure `run` has reported to its caller. Not set by callers.
    #[serde(skip_serializing_if = "is_default")]
    pub reported: Option<u32>,
    /// The size of its standard input, which the store keeps apart. 0 if it has none.
    #[serde(skip_serializing_if = "is_default")]
    pub stdin_bytes: u64,
    /// Details of what users asked of a running attempt. Not set by callers.
    #[serde(skip_serializing_if = "is_default")]
    pub requests: AttemptRequests,
    /// The trace in which it was enqueued. Boxed, because most jobs have none.
    #[serde(skip_serializing_if = "is_default")]
    pub trace: Option<Box<TraceContext>>,
}

/// Requests that concern one attempt. They stay behind when it ends, and mean nothing for the next: attempt numbers are
/// never used twice, so nothing has to be deleted when an attempt is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptRequests {
    pub attempt: u32,
    /// The number of the signal that a cancellation sends first.
    #[serde(skip_serializing_if = "is_default")]
    pub signal: Option<i32>,
    /// Since when it has been paused, in milliseconds of UTC.
    #[serde(skip_serializing_if = "is_default")]
    pub paused_at: Option<i64>,
}

impl JobOptions {
    /// `None` when nothing is set.
    pub fn to_json(&self) -> Option<String> {
        let is_set = *self != Self::default();
        is_set.then(|| serde_json::to_string(self).expect("maps with text keys serialize to JSON"))
    }

    pub fn from_json(json: Option<&str>) -> Result<Self, serde_json::Error> {
        json.map_or(Ok(Self::default()), serde_json::from_str)
    }

    pub fn on_dependency_failure(&self) -> OnDependencyFailure {
        if self.run_on_dependency_failure { OnDependencyFailure::Run } else { OnDependencyFailure::Cancel }
    }

    /// The requests that concern this attempt.
    pub fn requests_for(&self, attempt: u32) -> AttemptRequests {
        if self.requests.attempt == attempt { self.requests } else { AttemptRequests::default() }
    }

    pub fn retry(&self) -> RetryRules {
        RetryRules { retry_on: self.retry_on, no_retry_on: self.no_retry_on }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Milliseconds in place of the text that a caller writes: a worker reads them for every attempt of such a job.
mod stored_backoff {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::job::backoff::{BackoffChoice, Strategy};

    #[derive(Serialize, Deserialize)]
    struct Stored {
        strategy: Option<Strategy>,
        delay_ms: Option<u64>,
        base: Option<f64>,
        max_ms: Option<u64>,
        jitter: Option<f64>,
    }

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(super) fn serialize<S: Serializer>(
        backoff: &Option<BackoffChoice>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let stored = backoff.map(|BackoffChoice { strategy, delay, base, max, jitter }| Stored {
            strategy,
            delay_ms: delay.map(millis),
            base,
            max_ms: max.map(millis),
            jitter,
        });
        stored.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<BackoffChoice>, D::Error> {
        let stored = Option::<Stored>::deserialize(deserializer)?;
        Ok(stored.map(|Stored { strategy, delay_ms, base, max_ms, jitter }| BackoffChoice {
            strategy,
            delay: delay_ms.map(Duration::from_millis),
            base,
            max: max_ms.map(Duration::from_millis),
            jitter,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn default_options_store_nothing_and_others_keep_their_stored_form() {
        assert_eq!(JobOptions::default().to_json(), None);
        assert_eq!(JobOptions::from_json(None).expect("valid"), JobOptions::default());
        let options = JobOptions {
            name: Some("a name".to_owned()),
            backoff: Some(BackoffChoice {
                base: Some(1.5),
                delay: Some(Duration::from_millis(7)),
                ..BackoffChoice::default()
            }),
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            run_on_dependency_failure: true,
            unique_for: UniqueFor::Started,
            limits: "memory=1G,cpu=0.1".parse().expect("limits"),
            retry_on: None,
            no_retry_on: ExitCodes::new([2, 255]).ok(),
            reported: Some(1),
            stdin_bytes: 3,
            requests: AttemptRequests { attempt: 2, signal: Some(10), paused_at: Some(7) },
            trace: Some(Box::new(TraceContext {
                parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().expect("valid"),
                state: None,
                baggage: Some("k=v".to_owned()),
            })),
        };
        let stored = r#"{"name":"a name","backoff":{"strategy":null,"delay_ms":7,"base":1.5,"max_ms":null,"jitter":null},"env":{"A":"b"},"run_on_dependency_failure":true,"unique_for":"started","limits":{"memory":"1G","cpu":0.1},"no_retry_on":[2,255],"reported":1,"stdin_bytes":3,"requests":{"attempt":2,"signal":10,"paused_at":7},"trace":{"parent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","baggage":"k=v"}}"#;
        assert_eq!(options.to_json().as_deref(), Some(stored));
        assert_eq!(JobOptions::from_json(Some(stored)).expect("reads back"), options);
        assert_eq!(options.requests_for(2).signal, Some(10));
        assert_eq!(options.requests_for(3), AttemptRequests::default());
    }
}
