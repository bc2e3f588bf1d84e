//! The payload of a hook: one JSON object per event.

use serde::Serialize;

use super::HookEvent;
use crate::job::json::JobJson;
use crate::text::escape;
use crate::values::timestamp::Timestamp;

/// The body of a delivery, byte for byte the same on every retry.
#[derive(Debug, Serialize)]
pub struct Payload<'a> {
    /// The id of the delivery, never reused.
    pub delivery: &'a str,
    #[serde(serialize_with = "by_name")]
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
    Batch(BatchPayload<'a>),
    Worker(WorkerPayload<'a>),
    Dlq(DlqPayload<'a>),
}

/// A batch whose jobs are all finished.
#[derive(Debug, Serialize)]
pub struct BatchPayload<'a> {
    pub name: &'a str,
    /// How many of its jobs are in each state, zeros included.
    pub jobs: std::collections::BTreeMap<&'static str, u64>,
}

/// A worker that died.
#[derive(Debug, Serialize)]
pub struct WorkerPayload<'a> {
    pub id: &'a str,
    pub host: &'a str,
    /// The jobs that it held, which were given back.
    pub jobs: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct DlqPayload<'a> {
    /// The number of dead jobs.
    pub count: u64,
    pub threshold: u64,
    /// Null for all queues.
    pub queue: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn by_name<S: serde::Serializer>(event: &HookEvent, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(event.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_15_a_hook_payload_cannot_control_a_terminal() {
        let worker = WorkerPayload { id: "w\u{202e}", host: "h\u{9b}31m", jobs: vec![] };
        let at = Timestamp::from_millis(0);
        let payload = Payload {
            delivery: "d-1",
            event: HookEvent::WorkerCrashed,
            at,
            subject: Subject::Worker(worker),
        };
        assert!(payload.to_json().contains(r#"{"id":"w\u202e","host":"h\u009b31m","jobs":[]}"#));
    }

    #[test]
    fn a_payload_has_the_delivery_the_event_and_its_subject() {
        let subject = Subject::Dlq(DlqPayload { count: 11, threshold: 10, queue: None });
        let payload =
            Payload { delivery: "d-1", event: HookEvent::DlqAbove, at: Timestamp::from_millis(0), subject };
        assert_eq!(
            payload.to_json(),
            r#"{"delivery":"d-1","event":"dlq_above","at":"1970-01-01T00:00:00.000Z","dlq":{"count":11,"threshold":10,"queue":null}}"#
        );
    }
}
