//! Why a use-case did not do what was asked.

use std::path::PathBuf;
use std::time::Duration;

use super::jobs::enqueue::each::EachError;
use domain::hook::HookError;
use domain::job::edit::EditError;
use domain::job::life::StateName;
use domain::job::request::RequestError;
use domain::log::LogError;
use domain::schedule::ScheduleError;
use domain::settings::SettingError;
use domain::values::name::{BatchName, HookName, JobId, NameError, QueueName, ScheduleName};
use domain::values::span::format_span;
use store::transfer::ImportError;
use store::{Conflict, EnqueueRefusal, RestoreError, StoreError};
use sys::fs::ownership::OwnershipError;

/// How many jobs are named in one message.
const MAX_UNFINISHED_NAMED: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum OpError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("invalid job")]
    Request(#[from] RequestError),
    #[error("{} ({problem})", if *is_job { "invalid job" } else { "invalid JSON" })]
    Json {
        /// It is JSON, but no job.
        is_job: bool,
        problem: String,
    },
    #[error("the job was not enqueued")]
    Refused(#[source] EnqueueRefusal),
    #[error("the commit failed, and whether {} is unknown", stored(ids))]
    Unacknowledged {
        ids: Vec<JobId>,
        /// One that is there if they were stored, and only then.
        witness: Option<JobId>,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("invalid id `{id}`")]
    BadId {
        id: String,
        #[source]
        source: NameError,
    },
    #[error("there is no job `{0}`")]
    NoSuchJob(JobId),
    #[error("job `{0}` was removed while somebody waited for it")]
    Removed(JobId),
    /// A call from inside a job.
    #[error("{}", for_itself(job, dependent.as_ref()))]
    WaitsForItself {
        job: JobId,
        /// The job that was to be waited for, where that is another one.
        dependent: Option<JobId>,
    },
    /// A call from inside a job.
    #[error("queue `{queue}` runs one job at a time, and job `{job}` is that job as long as it waits")]
    OnlyPlaceTaken { job: JobId, queue: QueueName },
    #[error("job `{id}` is {} ({why})", state.name())]
    Unsuccessful { id: JobId, state: StateName, why: String },
    #[error("{}", timed_out(*after, unfinished, *of))]
    TimedOut { after: Duration, unfinished: Vec<(JobId, StateName)>, of: usize },
    #[error("job `{job}` has no attempt {attempt}")]
    NoSuchAttempt { job: JobId, attempt: u32, known: Vec<u32> },
    #[error("the output of attempt {attempt} of job `{job}` is not here (it ran on `{host}`)")]
    OutputGone { job: JobId, attempt: u32, host: String },
    #[error("failed to read the output of attempt {attempt} of job `{job}`")]
    DamagedOutput {
        job: JobId,
        attempt: u32,
        #[source]
        source: LogError,
    },
    #[error("failed to read the log `{}`", path.display())]
    DamagedLog {
        path: PathBuf,
        #[source]
        source: LogError,
    },
    #[error("failed to read the log `{}`", path.display())]
    CannotReadLog {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("job `{id}` was left as it is")]
    Conflict {
        id: JobId,
        #[source]
        conflict: Conflict,
    },
    #[error("there is no batch `{name}`")]
    NoSuchBatch { name: BatchName, nearest: Option<BatchName> },
    #[error("{count} of the {of} jobs of batch `{name}` did not succeed")]
    UnsuccessfulBatch { name: BatchName, count: u64, of: u64 },
    #[error("{unfinished} of the {of} jobs of batch `{name}` are unfinished after {}", format_span(*after))]
    BatchTimedOut { name: BatchName, after: Duration, unfinished: u64, of: u64 },
    #[error("stopped after {done} of the jobs were changed")]
    HalfDone {
        done: u64,
        #[source]
        source: StoreError,
    },
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error("there is already a schedule `{0}`")]
    ScheduleTaken(ScheduleName),
    #[error("there is no schedule `{name}`")]
    NoSuchSchedule { name: ScheduleName, nearest: Option<String> },
    #[error("line {line} was refused, nothing was stored")]
    BadLine {
        line: u64,
        #[source]
        source: Box<OpError>,
    },
    #[error("{}", stopped(*line, *stored, source))]
    Stopped {
        line: u64,
        stored: u64,
        #[source]
        source: Box<OpError>,
    },
    #[error("invalid line")]
    Each(#[from] EachError),
    #[error("it is longer than {limit} bytes")]
    LineTooLong { limit: usize },
    #[error("failed to read `{}`", path.display())]
    CannotRead {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to make `{}`", path.display())]
    CannotMake {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("invalid name `{name}`")]
    BadHookName {
        name: String,
        #[source]
        source: NameError,
    },
    #[error("invalid hook")]
    Hook(#[from] HookError),
    #[error("there is no hook `{name}`")]
    NoSuchHook { name: HookName, nearest: Option<String> },
    #[error("there is already a hook `{0}`")]
    HookTaken(HookName),
    #[error("hook `{hook}` could not be told ({why})")]
    Untold { hook: HookName, why: String },
    #[error("nothing was imported")]
    Import(#[source] ImportError),
    #[error("failed to write")]
    CannotWrite {
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the folder of a job is changed to an absolute one")]
    RelativeFolder,
    #[error("`{}` exists", .0.display())]
    FileExists(PathBuf),
    #[error("`{}` is the queue itself", .0.display())]
    BackupOntoItself(PathBuf),
    #[error("{}", alive(*count))]
    LiveWorkers { count: usize },
    #[error("another restore is under way")]
    RestoreUnderWay,
    #[error("the backup `{}` cannot be used, and nothing was changed", path.display())]
    BadBackup {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
    #[error("there is no home folder: neither --home nor QUEUECTL_HOME nor HOME is set")]
    NoHome,
    #[error("the home `{}` is not used", home.display())]
    ExposedHome {
        home: PathBuf,
        #[source]
        source: OwnershipError,
    },
    #[error("failed to make the home `{}`", home.display())]
    ForeignFolder {
        home: PathBuf,
        #[source]
        source: OwnershipError,
    },
    #[error("failed to understand the settings file `{}` ({problem})", path.display())]
    BadConfigFile { path: PathBuf, problem: String },
    #[error("the path of the store is empty")]
    EmptyStore,
    /// The address is not quoted: there may be a password in it.
    #[error("a store is a path or a postgres:// URL, and this is another URL")]
    UnknownStore,
    #[error("PostgreSQL stores are not supported yet")]
    NoPostgres,
}

impl From<ImportError> for OpError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            error @ (ImportError::IdTaken(_)
            | ImportError::KeyTaken { .. }
            | ImportError::Malformed { .. }
            | ImportError::Unreadable { .. }) => Self::Import(error),
        }
    }
}

impl From<RestoreError> for OpError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Store(error) => error.into(),
            RestoreError::Workers { count } => Self::LiveWorkers { count },
            RestoreError::UnderWay => Self::RestoreUnderWay,
            RestoreError::BadBackup { path, source } => Self::BadBackup { path, source },
        }
    }
}

fn alive(count: usize) -> String {
    if count == 1 {
        "a worker is running on this queue".to_owned()
    } else {
        format!("{count} workers are running on this queue")
    }
}

/// The whole story in one line: `what (why: because)`.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    if causes.is_empty() { error.to_string() } else { format!("{error} ({})", causes.join(": ")) }
}

impl From<serde_json::Error> for OpError {
    fn from(error: serde_json::Error) -> Self {
        // Most JSON is one line, and where it comes from a file that line has another number.
        let problem = error.to_string().replace(" at line 1 column ", " at column ");
        Self::Json { is_job: error.is_data(), problem }
    }
}

fn stored(ids: &[JobId]) -> String {
    match ids {
        [id] => format!("job `{id}` is stored"),
        _ => format!("the {} jobs are stored", ids.len()),
    }
}

fn for_itself(job: &JobId, dependent: Option<&JobId>) -> String {
    match dependent {
        Some(dependent) => format!("job `{job}` cannot wait for job `{dependent}`, which depends on it"),
        None => format!("job `{job}` cannot wait for itself"),
    }
}

fn timed_out(after: Duration, unfinished: &[(JobId, StateName)], of: usize) -> String {
    let after = format_span(after);
    if let (1, [(id, state)]) = (of, unfinished) {
        return format!("job `{id}` is still {} after {after}", state.name());
    }
    let shown = unfinished.iter().take(MAX_UNFINISHED_NAMED);
    let mut names: Vec<String> = shown.map(|(id, state)| format!("{id} is {}", state.name())).collect();
    if let more @ 1.. = unfinished.len() - names.len() {
        names.push(format!("and {more} more"));
    }
    let (count, are) = (unfinished.len(), if unfinished.len() == 1 { "is" } else { "are" });
    format!("{count} of {of} jobs {are} unfinished after {after} ({})", names.join(", "))
}

fn stopped(line: u64, stored: u64, why: &OpError) -> String {
    let before = match stored {
        0 => "nothing was stored before it".to_owned(),
        1 => "1 job was stored before it".to_owned(),
        _ => format!("{stored} jobs were stored before it"),
    };
    if let OpError::Unacknowledged { .. } = why {
        return format!("stopped at line {line}, {before}, and whether more was stored is unknown");
    }
    // Where the store failed, the line is not to blame.
    if stored == 0 && !matches!(why, OpError::Store(_)) {
        return format!("line {line} was refused, nothing was stored");
    }
    format!("stopped at line {line}, {before}")
}
