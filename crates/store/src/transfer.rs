//! A whole queue as lines: the format of `export` and `import`. Each line is an object with a `kind`.
//!
//! Jobs keep their order but not their numbers, which belong to one store.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use domain::values::timestamp::Timestamp;

/// The format version in the first line.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Queuectl {
        format: u32,
    },
    Setting(SettingLine),
    Queue(QueueLine),
    Environment(EnvironmentLine),
    Batch(BatchLine),
    Schedule(Box<ScheduleLine>),
    Job(Box<JobLine>),
    /// A chunk of the log file of an attempt.
    Log(LogLine),
    /// A job still waits for another.
    Dependency {
        job: String,
        waits_for: String,
    },
    UniqueKey {
        key: String,
        job: String,
        held_until: Option<Timestamp>,
    },
    Event(EventLine),
    Hook(Box<HookLine>),
    Delivery(DeliveryLine),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingLine {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLine {
    pub name: String,
    pub created_at: Timestamp,
    pub paused_at: Option<Timestamp>,
    pub paused_by: Option<String>,
    pub pause_reason: Option<String>,
    pub concurrency: Option<u32>,
    pub rate_count: Option<u32>,
    pub rate_period_ms: Option<u64>,
    pub limits: Option<String>,
    pub retry_on: Option<String>,
    pub no_retry_on: Option<String>,
}

/// The environment of jobs, schedules or hooks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentLine {
    /// Jobs, schedules and hooks refer to it by this number.
    pub number: u64,
    /// `NAME=value` strings, each ended by a NUL, in base64.
    #[serde(with = "base64_bytes")]
    pub variables: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchLine {
    pub name: String,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleLine {
    pub name: String,
    /// The kind of `expression`: `cron`, `every` or `at`.
    pub when: String,
    pub expression: String,
    pub time_zone: Option<String>,
    /// The job to enqueue, in the form that `enqueue` accepts.
    pub job: Map<String, Value>,
    pub on_missed: String,
    pub missed_limit: u32,
    pub on_overlap: String,
    pub created_at: Timestamp,
    pub created_by: String,
    pub last_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    pub missed_at: Option<Timestamp>,
    pub skipped_at: Option<Timestamp>,
    pub paused_at: Option<Timestamp>,
    pub paused_by: Option<String>,
    pub pause_reason: Option<String>,
    /// See [`EnvironmentLine::number`].
    pub environment: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookLine {
    pub name: String,
    pub event: String,
    pub queue: Option<String>,
    pub threshold: Option<u64>,
    pub command: Option<String>,
    pub url: Option<String>,
    pub secret: Option<String>,
    pub cwd: Option<String>,
    /// See [`EnvironmentLine::number`].
    pub environment: Option<u64>,
    pub created_at: Timestamp,
    pub created_by: String,
    pub delivered_at: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
    pub error: Option<String>,
    pub gave_up: u64,
    pub gave_up_at: Option<Timestamp>,
}

/// A pending delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveryLine {
    pub hook: String,
    /// The id that the receiver sees.
    pub name: String,
    /// JSON as text, so that receivers get exactly the same bytes.
    pub payload: String,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
    pub tries: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLine {
    /// See [`domain::job::Job::number`]; in the exporting store.
    #[serde(skip)]
    pub number: u64,
    pub id: String,
    pub queue: String,
    pub command: String,
    pub state: String,
    pub priority: i32,
    pub blocked_by: u32,
    pub run_at: Option<Timestamp>,
    pub due_at: Timestamp,
    pub attempts: u32,
    pub max_retries: u32,
    pub failures: u32,
    pub losses: u32,
    pub loss_boot: Option<String>,
    pub worker_id: Option<String>,
    pub cancel_requested: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    /// The signal number.
    pub signal: Option<i32>,
    pub error: Option<String>,
    pub reason: Option<String>,
    pub timeout_ms: Option<u64>,
    pub cwd: Option<String>,
    /// See [`EnvironmentLine::number`].
    pub environment: Option<u64>,
    pub unique_key: Option<String>,
    pub tags: Vec<String>,
    pub depends_on: Vec<String>,
    pub batch: Option<String>,
    /// The schedule that enqueued it, and the occurrence that it is for.
    pub schedule: Option<String>,
    pub scheduled_for: Option<Timestamp>,
    /// Options that few jobs set: `env`, `backoff` and the like.
    pub options: Map<String, Value>,
    pub history: Vec<AttemptLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptLine {
    pub attempt: u32,
    pub worker_id: String,
    pub host: String,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub duration_ms: u64,
    pub outcome: String,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub error: Option<String>,
    pub cpu_ms: Option<u64>,
    pub max_rss_bytes: Option<u64>,
    pub log_bytes: u64,
    /// Its output, as [`domain::log`] writes it, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "base64_option")]
    pub output: Option<Vec<u8>>,
}

/// A chunk of a log file. The last one is empty, and its offset is the length of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    pub job: String,
    pub attempt: u32,
    pub offset: u64,
    #[serde(with = "base64_bytes")]
    pub content: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventLine {
    pub at: Timestamp,
    pub event: String,
    pub by: String,
    pub job: Option<String>,
    pub detail: Option<String>,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    pub jobs: u64,
    /// Jobs that already existed.
    pub skipped: u64,
}

/// The reason why an import did nothing.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Store(#[from] super::StoreError),
    #[error("there is already a job `{0}`")]
    IdTaken(String),
    #[error("job `{holder}` holds the unique key `{key}`")]
    KeyTaken { key: String, holder: String },
    #[error("{what} is invalid: {why}")]
    Malformed { what: String, why: String },
    /// A line could not be read.
    #[error("line {line} cannot be read")]
    Unreadable {
        line: u64,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

mod base64_option {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => super::base64_bytes::serialize(bytes, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        #[derive(Deserialize)]
        struct Bytes(#[serde(with = "super::base64_bytes")] Vec<u8>);
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|bytes| bytes.0))
    }
}
