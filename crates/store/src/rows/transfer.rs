//! A whole queue as lines: the format of `export` and `import`. Each line is an object with a `kind`, and most lines are a
//! row of a table: its columns, and the names of the rows that it refers to.
//!
//! Jobs keep their order but not their numbers, which belong to one store, unless a whole queue moves.

mod export;
mod history;
mod import;
mod import_job;
mod scope;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use self::export::export;
pub use self::history::{MinutesLine, TotalsLine};
pub(crate) use self::import::import;
pub use super::columns::{Bytes, Count, Json};
use super::record::record;
use crate::StoreError;
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
    Totals(TotalsLine),
    Minutes(MinutesLine),
    Environment(EnvironmentLine),
    Batch(BatchLine),
    Schedule(Box<ScheduleLine>),
    Job(Box<JobLine>),
    Log(LogLine),
    Dependency(DependencyLine),
    UniqueKey(UniqueKeyLine),
    Event(EventLine),
    Hook(Box<HookLine>),
    Delivery(DeliveryLine),
}

record! {
    pub struct SettingLine {
        key: String,
        value: String,
    }

    pub struct QueueLine {
        name: String,
        created_at: Timestamp,
        paused_at: Option<Timestamp>,
        paused_by: Option<String>,
        pause_reason: Option<String>,
        concurrency: Option<u32>,
        rate_count: Option<u32>,
        rate_period_ms: Option<Count>,
        limits: Option<String>,
        retry_on: Option<String>,
        no_retry_on: Option<String>,
    }

    /// The environment of jobs, schedules or hooks.
    pub struct EnvironmentLine {
        /// Jobs, schedules and hooks refer to it by this number.
        #[serde(rename = "number")]
        id: i64,
        /// `NAME=value` strings, each ended by a NUL.
        variables: Bytes,
    }

    pub struct BatchLine {
        name: String,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    pub struct ScheduleLine {
        name: String,
        /// The kind of `expression`: `cron`, `every` or `at`.
        #[serde(rename = "when")]
        kind: String,
        expression: String,
        time_zone: Option<String>,
        /// The job to enqueue, in the form that `enqueue` accepts.
        job: Json<Map<String, Value>>,
        on_missed: String,
        missed_limit: u32,
        on_overlap: String,
        created_at: Timestamp,
        created_by: String,
        last_at: Option<Timestamp>,
        next_at: Option<Timestamp>,
        missed_at: Option<Timestamp>,
        skipped_at: Option<Timestamp>,
        paused_at: Option<Timestamp>,
        paused_by: Option<String>,
        pause_reason: Option<String>,
        /// See [`EnvironmentLine::id`].
        #[serde(rename = "environment")]
        environment_id: Option<i64>,
    }

    pub struct HookLine {
        name: String,
        event: String,
        queue: Option<String>,
        threshold: Option<Count>,
        command: Option<String>,
        url: Option<String>,
        secret: Option<String>,
        cwd: Option<String>,
        /// See [`EnvironmentLine::id`].
        #[serde(rename = "environment")]
        environment_id: Option<i64>,
        created_at: Timestamp,
        created_by: String,
        delivered_at: Option<Timestamp>,
        failing_since: Option<Timestamp>,
        error: Option<String>,
        gave_up: Count,
        gave_up_at: Option<Timestamp>,
    }

    /// A pending delivery. One in flight is exported as due, as if no worker had taken it.
    pub struct DeliveryLine {
        hook: String = "(select name from hooks where id = hook_id)",
        /// The id that the receiver sees.
        name: String,
        /// JSON as text, so that receivers get exactly the same bytes.
        payload: String,
        created_at: Timestamp,
        due_at: Timestamp = "case when worker_seq is null then due_at else created_at end",
        tries: u32,
    }

    pub struct JobLine {
        /// See [`domain::job::Job::number`]; in the exporting store.
        #[serde(skip)]
        number: u64 = "seq",
        id: String,
        queue: String = "(select name from queues where id = queue_id)",
        command: String,
        state: String,
        priority: i32,
        blocked_by: u32,
        run_at: Option<Timestamp>,
        due_at: Timestamp,
        attempts: u32,
        max_retries: u32,
        failures: u32,
        losses: u32,
        loss_boot: Option<String>,
        worker_id: Option<String> = "(select id from workers where seq = worker_seq)",
        cancel_requested: bool = "cancel_requested",
        created_at: Timestamp,
        updated_at: Timestamp,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
        exit_code: Option<i32>,
        /// The signal number.
        signal: Option<i32>,
        error: Option<String>,
        reason: Option<String>,
        timeout_ms: Option<Count>,
        cwd: Option<String>,
        /// See [`EnvironmentLine::id`].
        #[serde(rename = "environment")]
        environment_id: Option<i64>,
        unique_key: Option<String>,
        tags: Json<Vec<String>>,
        depends_on: Json<Vec<String>>,
        batch: Option<String> = "(select name from batches where id = batch_id)",
        /// The schedule that enqueued it, and the occurrence that it is for.
        schedule: Option<String> = "(select name from schedules where id = schedule_id)",
        scheduled_for: Option<Timestamp>,
        /// Options that few jobs set: `env`, `backoff` and the like.
        options: Json<Map<String, Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdin: Option<Bytes> = "(select content from outputs o where o.seq = jobs.seq and o.number = 0)",
        [history: Vec<AttemptLine>]
    }

    pub struct AttemptLine {
        #[serde(rename = "attempt")]
        number: u32,
        worker_id: String = "(select id from workers where seq = worker_seq)",
        host: String = "(select host from workers where seq = worker_seq)",
        started_at: Timestamp,
        finished_at: Timestamp,
        duration_ms: Count,
        outcome: String,
        exit_code: Option<i32>,
        signal: Option<i32>,
        error: Option<String>,
        cpu_ms: Option<Count>,
        max_rss_bytes: Option<Count>,
        log_bytes: Count,
        /// Its output, as [`domain::log`] writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Bytes>
            = "(select content from outputs o where o.seq = attempts.seq and o.number = attempts.number)",
    }

    /// A job still waits for another. The other dependencies of a job are in its own line.
    pub struct DependencyLine {
        job: String = "c.id",
        waits_for: String = "p.id",
    }

    pub struct UniqueKeyLine {
        key: String,
        job: String = "j.id",
        held_until: Option<Timestamp>,
    }

    pub struct EventLine {
        at: Timestamp,
        event: String,
        by: String,
        job: Option<String> = "(select id from jobs where jobs.seq = events.seq)",
        detail: Option<String>,
    }
}

/// A part of the log file of an attempt: see [`sys::fs::sparse::Parts`]. For a store that keeps output itself, an
/// [`OutputPart`](crate::OutputPart).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    pub job: String,
    pub attempt: u32,
    pub offset: u64,
    pub content: Bytes,
}

/// How an import treats jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportRules {
    /// Skips jobs whose id is taken.
    pub if_absent: bool,
    pub numbers: ImportNumbers,
}

/// The numbers of imported jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportNumbers {
    #[default]
    New,
    /// Those of the lines, in an empty store.
    Kept,
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    pub jobs: u64,
    /// The ids of jobs that already existed.
    pub skipped: HashSet<String>,
}

/// The reason why an import did nothing.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is already a job `{0}`")]
    IdTaken(String),
    #[error("it is not empty: it has {what}")]
    NotEmpty { what: &'static str },
    #[error("job `{holder}` holds the unique key `{key}`")]
    KeyTaken { key: String, holder: String },
    #[error("{what} is invalid: {why}")]
    Malformed { what: String, why: String },
    #[error("line {line} is not valid JSON")]
    NotJson { line: u64 },
    /// A line could not be read.
    #[error("line {line} cannot be read")]
    Unreadable {
        line: u64,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
