//! What hooks are told: one JSON object per event.

use serde::Serialize;

use super::HookEvent;
use crate::job::json::JobJson;
use crate::text::escape;
use crate::values::timestamp::Timestamp;

/// What is delivered, byte for byte the same however often.
#[derive(Debug, Serialize)]
pub struct Letter<'a> {
    /// What it is known by: never used for another one.
    pub delivery: &'a str,
    #[serde(serialize_with = "by_name")]
    pub event: HookEvent,
    pub at: Timestamp,
    #[serde(flatten)]
    pub news: News<'a>,
}

impl Letter<'_> {
    pub fn to_json(&self) -> String {
        escape::to_json(self).expect("text and numbers become JSON")
    }
}

/// What it is about.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum News<'a> {
    Job(Box<JobJson<'a>>),
    Batch(BatchNews<'a>),
    Worker(WorkerNews<'a>),
    Dlq(DlqNews<'a>),
}

/// A batch of which all jobs are finished.
#[derive(Debug, Serialize)]
pub struct BatchNews<'a> {
    pub name: &'a str,
    /// How many of its jobs are in each state, zeros included.
    pub jobs: std::collections::BTreeMap<&'static str, u64>,
}

/// A worker that died.
#[derive(Debug, Serialize)]
pub struct WorkerNews<'a> {
    pub id: &'a str,
    pub host: &'a str,
    /// The jobs that it held, which were given back.
    pub jobs: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
pub struct DlqNews<'a> {
    /// How many jobs are dead now.
    pub count: u64,
    pub threshold: u64,
    /// Null: in all queues.
    pub queue: Option<&'a str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn by_name<S: serde::Serializer>(event: &HookEvent, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(event.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_15_a_letter_cannot_steer_the_terminal_of_its_reader() {
        let worker = WorkerNews { id: "w\u{202e}", host: "h\u{9b}31m", jobs: vec![] };
        let at = Timestamp::from_millis(0);
        let letter =
            Letter { delivery: "d-1", event: HookEvent::WorkerCrashed, at, news: News::Worker(worker) };
        assert!(letter.to_json().contains(r#"{"id":"w\u202e","host":"h\u009b31m","jobs":[]}"#));
    }

    #[test]
    fn a_letter_says_what_it_is_about() {
        let news = News::Dlq(DlqNews { count: 11, threshold: 10, queue: None });
        let letter =
            Letter { delivery: "d-1", event: HookEvent::DlqAbove, at: Timestamp::from_millis(0), news };
        assert_eq!(
            letter.to_json(),
            r#"{"delivery":"d-1","event":"dlq_above","at":"1970-01-01T00:00:00.000Z","dlq":{"count":11,"threshold":10,"queue":null}}"#
        );
    }
}
