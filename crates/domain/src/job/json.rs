//! The JSON form of a job, for `--json`, HTTP and hook payloads.

use std::fmt::Display;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Job;
use super::life::State;
use crate::values::name::JobId;

/// A field by its name, and its value.
pub type JobField = (&'static str, fn(&Job) -> Value);

/// The fields of a job's JSON, in order.
pub static FIELDS: [JobField; 28] = [
    ("number", |job| job.number.into()),
    ("id", |job| job.id.as_str().into()),
    ("name", |job| job.name().into()),
    ("queue", |job| job.queue.as_str().into()),
    ("command", |job| job.command.as_str().into()),
    ("state", |job| job.life.state.name().name().into()),
    ("priority", |job| job.priority.into()),
    ("attempts", |job| job.life.attempts.into()),
    ("max_retries", |job| job.life.max_retries.into()),
    ("failures", |job| job.life.failures.into()),
    ("created_at", |job| text(Some(job.created_at))),
    ("updated_at", |job| text(Some(job.updated_at))),
    ("run_at", |job| text(job.life.run_at)),
    ("started_at", |job| text(job.latest.started_at)),
    ("finished_at", |job| text(job.life.state.finished_at())),
    ("next_retry_at", |job| text((job.life.state == State::Failed).then_some(job.life.due_at))),
    ("timeout_ms", |job| {
        job.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)).into()
    }),
    ("cwd", |job| job.cwd.as_deref().into()),
    ("tags", |job| job.tags.as_slice().into()),
    ("depends_on", |job| job.depends_on.iter().map(JobId::as_str).collect()),
    ("unique_key", |job| job.unique_key.as_deref().into()),
    ("worker_id", |job| job.life.state.lease().map(|lease| lease.worker.as_str()).into()),
    ("lease_until", |job| text(job.life.state.lease().map(|lease| lease.until))),
    ("paused_at", |job| text(job.life.state.paused_at())),
    ("exit_code", |job| job.latest.exit_code.into()),
    ("signal", |job| text(job.latest.signal)),
    ("error", |job| job.latest.error.as_deref().into()),
    ("reason", |job| job.life.state.reason().into()),
];

/// A field that the JSON of a list contains only on request.
pub static BATCH: JobField = ("batch", |job| text(job.batch.as_ref()));

fn text(value: Option<impl Display>) -> Value {
    value.map(|value| value.to_string()).into()
}

/// A job with the [`FIELDS`].
#[derive(Debug)]
pub struct JobJson<'a>(&'a Job);

impl<'a> From<&'a Job> for JobJson<'a> {
    fn from(job: &'a Job) -> Self {
        Self(job)
    }
}

impl Serialize for JobJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(FIELDS.iter().map(|(name, value)| (name, value(self.0))))
    }
}
