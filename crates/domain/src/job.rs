//! A job as it is stored and shown, and the record of its attempts.

pub mod backoff;
pub mod cause;
pub mod edit;
pub mod environment;
pub mod graph;
pub mod handle;
pub mod json;
pub mod life;
pub mod limits;
pub mod options;
pub mod outcome;
pub mod priority;
pub mod retry_rules;
pub mod spec;
pub mod template;
pub mod trace;
pub mod unique;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use self::environment::Environment;
use self::handle::JobHandle;
use self::life::Life;
use self::options::JobOptions;
use self::outcome::Outcome;
use self::spec::SpecError;
use super::values::name::{BatchName, JobId, QueueName, ScheduleName, WorkerId};
use super::values::signal::Signal;
use super::values::timestamp::Timestamp;
use crate::json::{parse_from, text};

/// A job that is about to be enqueued: validated, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    pub id: JobId,
    pub command: String,
    pub queue: QueueName,
    pub priority: i32,
    pub max_retries: u32,
    pub timeout: Option<Duration>,
    pub start: Start,
    pub depends_on: Vec<JobId>,
    pub unique_key: Option<String>,
    pub cwd: Option<String>,
    /// The caller's environment. Without one the command gets the worker's.
    pub environment: Option<Arc<Environment>>,
    pub tags: Vec<String>,
    pub options: JobOptions,
    /// The standard input of every attempt; `None` if it is empty.
    pub stdin: Option<Arc<[u8]>>,
    /// The batch that it belongs to.
    pub batch: Option<BatchName>,
    /// If the id is taken, return the existing job instead of an error.
    pub if_absent: bool,
}

/// When a job may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Now,
    At(Timestamp),
    /// Counted from the time of enqueuing by the store's clock.
    After(Duration),
}

crate::named_enum! {
    /// The fate of a job when a dependency is dead or cancelled.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum OnDependencyFailure {
        #[default]
        Cancel = "cancel",
        Run = "run",
    }
}

impl FromStr for OnDependencyFailure {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::from_name(text).ok_or_else(|| SpecError::BadDependencyChoice { typed: text.to_owned() })
    }
}

impl fmt::Display for OnDependencyFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

parse_from!(text: OnDependencyFailure);

/// A stored job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub id: JobId,
    /// Its number in the order of enqueuing, never reused.
    pub number: u64,
    pub queue: QueueName,
    pub command: String,
    pub priority: i32,
    pub life: Life,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub timeout: Option<Duration>,
    pub cwd: Option<String>,
    pub tags: Vec<String>,
    pub depends_on: Vec<JobId>,
    pub unique_key: Option<String>,
    pub options: JobOptions,
    pub batch: Option<BatchName>,
    pub latest: LatestAttempt,
}

impl Job {
    /// How people name it: by the id that its caller chose, else by its number.
    pub fn handle(&self) -> String {
        self.full_handle().short()
    }

    /// How messages for people and programs name it.
    pub fn full_handle(&self) -> JobHandle {
        JobHandle { id: self.id.clone(), number: Some(self.number) }
    }

    pub fn name(&self) -> Option<&str> {
        self.options.name.as_deref()
    }

    /// What tells it apart where space is short: its name, else its command.
    pub fn label(&self) -> &str {
        self.name().unwrap_or(&self.command)
    }
}

/// The job's columns about its latest attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatestAttempt {
    /// When the latest attempt started; it may still be running. The other fields are about the latest one that ended.
    pub started_at: Option<Timestamp>,
    pub exit_code: Option<i32>,
    pub signal: Option<Signal>,
    /// One line: how it ended and the last line of stderr. Absent after success and after `retry`.
    pub error: Option<String>,
}

/// One execution of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub number: u32,
    pub worker: WorkerId,
    pub host: String,
    pub home: WorkerHome,
    pub started_at: Timestamp,
    /// `None` while it runs.
    pub ending: Option<Ending>,
}

/// The home in which a worker was started, which keeps the log files of its attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerHome {
    /// Empty if unknown.
    pub id: String,
    /// The directory of its workers.
    pub folder: PathBuf,
}

/// How an attempt ended and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub finished_at: Timestamp,
    /// Measured by the worker with a monotonic clock, so that a change of the system time does not distort it.
    pub duration: Duration,
    pub outcome: Outcome,
    pub error: Option<String>,
    pub usage: Usage,
    /// Bytes of output that were kept.
    pub log_bytes: u64,
}

/// The resources that an attempt used, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Option<Duration>,
    pub max_rss_bytes: Option<u64>,
}

/// An action of a user on a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobEvent {
    pub at: Timestamp,
    pub event: String,
    pub by: String,
}

/// A job with its schedule, events and history.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    pub job: Job,
    /// The schedule that enqueued it, unless the schedule was removed.
    pub schedule: Option<ScheduleName>,
    /// The time of the schedule that it was enqueued for.
    pub scheduled_for: Option<Timestamp>,
    pub events: Vec<JobEvent>,
    pub history: Vec<Attempt>,
}
