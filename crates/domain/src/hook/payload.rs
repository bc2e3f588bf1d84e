//! The payload of a hook: one JSON object per event.

use std::collections::BTreeMap;

use serde::Serialize;

use super::HookEvent;
use crate::job::json::JobJson;
use crate::text::escape;
use crate::values::name::QueueName;
use crate::values::timestamp::Timestamp;

/// The body of a delivery, byte for byte the same on every retry.
#[derive(Debug, Serialize)]
pub struct Payload<'a> {
    /// The id of the delivery, never reused.
    pub delivery: &'a str,
    pub event: HookEvent,
    pub at: Timestamp,
    #[serde(flatten)]
    pub subject: Subject<'a>,
}

impl Payload<'_> {
    pub fn to_json(&self) -> String {
        escape::to_json(self).expect("text and numbers serialise to JSON")
    }
}

/// The subject of an event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject<'a> {
    Job(Box<JobJson<'a>>),
    /// A batch whose jobs are all finished, and how many of them are in each state, zeros included.
    Batch {
        name: &'a str,
        jobs: BTreeMap<&'static str, u64>,
    },
    /// A worker that died, and the jobs that it held, which were given back.
    Worker {
        id: &'a str,
        host: &'a str,
        jobs: Vec<&'a str>,
    },
    /// The number of dead jobs, in one queue or in all.
    Dlq {
        count: u64,
        threshold: u64,
        queue: Option<&'a QueueName>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_15_a_hook_payload_cannot_control_a_terminal() {
        let subject = Subject::Worker { id: "w\u{202e}", host: "h\u{9b}31m", jobs: vec![] };
        let at = Timestamp::from_millis(0);
        let payload = Payload { delivery: "d-1", event: HookEvent::WorkerCrashed, at, subject };
        assert!(payload.to_json().contains(r#"{"id":"w\u202e","host":"h\u009b31m","jobs":[]}"#));
    }

    #[test]
    fn a_payload_has_the_delivery_the_event_and_its_subject() {
        let subject = Subject::Dlq { count: 11, threshold: 10, queue: None };
        let payload =
            Payload { delivery: "d-1", event: HookEvent::DlqAbove, at: Timestamp::from_millis(0), subject };
        assert_eq!(
            payload.to_json(),
            r#"{"delivery":"d-1","event":"dlq_above","at":"1970-01-01T00:00:00.000Z","dlq":{"count":11,"threshold":10,"queue":null}}"#
        );
    }
}
