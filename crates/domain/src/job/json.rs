//! The JSON form of a job, for `--json`, HTTP and hook payloads.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Job;
use super::life::State;
use crate::values::name::{BatchName, JobId};
use crate::values::signal::Signal;
use crate::values::timestamp::Timestamp;

/// A field by its name, and its value.
pub type JobField = (&'static str, fn(&Job) -> FieldValue<'_>);

/// The value of a field. Long lists are written from it without a copy of each text.
#[derive(Debug)]
pub enum FieldValue<'j> {
    Null,
    Number(i64),
    Unsigned(u64),
    Text(&'j str),
    Time(Timestamp),
    Signal(Signal),
    Texts(&'j [String]),
    Ids(&'j [JobId]),
}

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
    ("created_at", |job| job.created_at.into()),
    ("updated_at", |job| job.updated_at.into()),
    ("run_at", |job| job.life.run_at.into()),
    ("started_at", |job| job.latest.started_at.into()),
    ("finished_at", |job| job.life.state.finished_at().into()),
    ("next_retry_at", |job| (job.life.state == State::Failed).then_some(job.life.due_at).into()),
    ("timeout_ms", |job| {
        job.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)).into()
    }),
    ("cwd", |job| job.cwd.as_deref().into()),
    ("tags", |job| FieldValue::Texts(&job.tags)),
    ("depends_on", |job| FieldValue::Ids(&job.depends_on)),
    ("unique_key", |job| job.unique_key.as_deref().into()),
    ("worker_id", |job| job.life.state.lease().map(|lease| lease.worker.as_str()).into()),
    ("lease_until", |job| job.life.state.lease().map(|lease| lease.until).into()),
    ("paused_at", |job| job.life.state.paused_at().into()),
    ("exit_code", |job| job.latest.exit_code.into()),
    ("signal", |job| job.latest.signal.into()),
    ("error", |job| job.latest.error.as_deref().into()),
    ("reason", |job| job.life.state.reason().into()),
];

/// A field that the JSON of a list contains only on request.
pub static BATCH: JobField = ("batch", |job| job.batch.as_ref().map(BatchName::as_str).into());

impl<T: Into<Self>> From<Option<T>> for FieldValue<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Variants with one value, from the types that they are made of.
macro_rules! from_values {
    ($($variant:ident($type:ty)),+ $(,)?) => {
        $(impl<'j> From<$type> for FieldValue<'j> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })+
    };
}
from_values!(Number(i32), Unsigned(u32), Unsigned(u64), Text(&'j str), Time(Timestamp), Signal(Signal));

impl Serialize for FieldValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Unsigned(number) => serializer.serialize_u64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Time(time) => serializer.collect_str(time),
            Self::Signal(signal) => serializer.collect_str(signal),
            Self::Texts(texts) => serializer.collect_seq(*texts),
            Self::Ids(ids) => serializer.collect_seq(ids.iter().map(JobId::as_str)),
        }
    }
}

impl From<FieldValue<'_>> for Value {
    fn from(value: FieldValue<'_>) -> Self {
        match value {
            FieldValue::Null => Self::Null,
            FieldValue::Number(number) => number.into(),
            FieldValue::Unsigned(number) => number.into(),
            FieldValue::Text(text) => text.into(),
            FieldValue::Time(time) => time.to_string().into(),
            FieldValue::Signal(signal) => signal.to_string().into(),
            FieldValue::Texts(texts) => texts.into(),
            FieldValue::Ids(ids) => ids.iter().map(JobId::as_str).collect(),
        }
    }
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
