//! The errors of use cases.

mod hints;
mod judge;

pub use hints::{HOW_TO_LIST_JOBS, did_you_mean, hint_for_each, how_to_follow};
pub use judge::{Judgement, judge};

use std::path::PathBuf;
use std::time::Duration;

use super::home::location::StoreAddress;
use super::jobs::enqueue::each::EachError;
use domain::hook::HookError;
use domain::job::edit::EditError;
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use domain::job::spec::SpecError;
use domain::log::LogError;
use domain::schedule::ScheduleError;
use domain::settings::SettingError;
use domain::text::nearest::nearest;
use domain::values::name::{BatchName, HookName, JobId, NameError, QueueName, ScheduleName};
use domain::values::span::format_span;
use store::postgres::AddressError;
use store::sqlite::RestoreError;
use store::transfer::ImportError;
use store::{Conflict, EnqueueRefusal, MoveError, StoreError, WriteError};
use sys::fs::ownership::OwnershipError;
use sys::process::user;

domain::named_enum! {
    /// A thing that people name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Named {
        Batch = "batch",
        Schedule = "schedule",
        Hook = "hook",
        Queue = "queue",
        Cause = "cause",
    }
}

/// What an error means to a caller. From it, the command line decides the exit code and HTTP the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Failed,
    /// The receiver of a hook refused the event, or could not be reached.
    HookFailed,
    /// The request is understood and not valid. Nothing was changed.
    Usage,
    /// The request is not JSON. Nothing was changed.
    Malformed,
    NotFound,
    /// It existed, and was not kept.
    Gone,
    Conflict,
    /// Another process holds the store. Nothing was changed; trying again helps.
    Busy,
    /// The disk of the store is full. Nothing was changed.
    Full,
    /// The store cannot be used. Nothing was changed.
    Unavailable,
    /// The commit failed, and whether it took effect is unknown.
    Unknown,
    /// The data is corrupt, or of another version.
    Corrupt,
    TimedOut,
}

/// How many unfinished jobs one message names.
pub const MAX_UNFINISHED_NAMED: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum OpError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Move(#[from] MoveError),
    #[error("a queue cannot be copied onto itself")]
    CopyOntoItself,
    #[error("`{to}` is not empty: it has {what}")]
    NotEmpty { to: StoreAddress, what: &'static str },
    /// A process died after it had copied the queue, and before the old store was marked.
    #[error("`{to}` holds an unfinished copy")]
    UnfinishedCopy { to: StoreAddress },
    #[error("invalid job")]
    Request(#[from] SpecError),
    #[error("{}", if *is_job { "invalid job" } else { "invalid JSON" })]
    Json {
        /// It is valid JSON, but not a valid job.
        is_job: bool,
        #[source]
        problem: JsonProblem,
    },
    /// A line of JSON lines that ends within an object.
    #[error("invalid JSON")]
    IncompleteLine(#[source] JsonProblem),
    #[error("the job was not enqueued")]
    Refused(#[source] EnqueueRefusal),
    #[error("the commit failed, and whether {} is unknown", stored(ids))]
    Unacknowledged {
        ids: Vec<JobId>,
        /// A job that exists if and only if they were stored.
        witness: Option<JobId>,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("invalid {what} `{typed}`")]
    BadName {
        /// `id` or `name`.
        what: &'static str,
        typed: String,
        #[source]
        source: NameError,
    },
    #[error("there is no job `{0}`")]
    NoSuchJob(JobId),
    #[error("job `{0}` was removed while it was being waited for")]
    Removed(JobId),
    /// The caller runs inside a job.
    #[error("{}", for_itself(job, dependent.as_ref()))]
    WaitsForItself {
        job: JobId,
        /// The job to wait for, if it is another one.
        dependent: Option<JobId>,
    },
    /// The caller runs inside a job.
    #[error("queue `{queue}` runs one job at a time, and job `{job}` occupies it while it waits")]
    OnlySlotTaken { job: JobId, queue: QueueName },
    #[error("job {job} is {} {why}", state.name())]
    Unsuccessful {
        job: JobHandle,
        state: StateName,
        /// `(user)`, or `because …`
        why: String,
    },
    #[error("{}", timed_out(*after, unfinished, *of))]
    TimedOut { after: Duration, unfinished: Vec<(JobHandle, StateName)>, of: usize },
    #[error("job `{job}` has no attempt {attempt}")]
    NoSuchAttempt { job: JobId, attempt: u32, known: Vec<u32> },
    #[error("the output of attempt {attempt} of job `{job}` is not on this machine (it ran on `{host}`)")]
    OutputElsewhere { job: JobId, attempt: u32, host: String },
    /// It ran on this machine.
    #[error("the output of attempt {attempt} of job `{job}` is missing")]
    OutputMissing { job: JobId, attempt: u32 },
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
    #[error("job {job} cannot be {refused}")]
    Conflict {
        job: JobHandle,
        /// What was refused: `cancelled`, `edited`.
        refused: &'static str,
        #[source]
        conflict: Conflict,
    },
    #[error("job {job} is not dead (it is {})", state.name())]
    NotDead { job: JobHandle, state: StateName },
    #[error("there is no {} `{name}`", what.name())]
    NoSuch { what: Named, name: String, nearest: Option<String> },
    #[error("several causes begin with `{typed}`")]
    AmbiguousCause { typed: String },
    #[error("{count} of {of} jobs in batch `{name}` did not succeed")]
    UnsuccessfulBatch { name: BatchName, count: u64, of: u64 },
    #[error("{unfinished} of {of} jobs in batch `{name}` {} still unfinished after {}", if *unfinished == 1 { "is" } else { "are" }, format_span(*after))]
    BatchTimedOut { name: BatchName, after: Duration, unfinished: u64, of: u64 },
    #[error("stopped after changing {done} of the jobs")]
    PartlyDone {
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
    #[error("schedule `{0}` was changed by another process in the meantime")]
    ScheduleChanged(ScheduleName),
    #[error("line {line} was refused; nothing was stored")]
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
    #[error("the line is longer than {limit} bytes")]
    LineTooLong { limit: usize },
    #[error("a JSON document may have at most {limit} bytes; write one job per line instead")]
    DocumentTooLong { limit: usize },
    #[error("failed to read `{}`", path.display())]
    CannotRead {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("failed to create `{}`", path.display())]
    CannotMake {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("invalid hook")]
    Hook(#[from] HookError),
    #[error("there is already a hook `{0}`")]
    HookTaken(HookName),
    #[error("hook `{hook}` failed ({why})")]
    HookFailed { hook: HookName, why: String },
    #[error("nothing was imported")]
    Import(#[source] ImportError),
    #[error("the jobs were imported, but not all of their log files")]
    LogsNotImported {
        #[source]
        source: Box<OpError>,
    },
    #[error("failed to write the output")]
    CannotWrite {
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("the working directory of a job must be an absolute path")]
    RelativeFolder,
    #[error("`{0}` cannot be changed for many jobs at once: it describes one job")]
    OnlyForOneJob(&'static str),
    #[error("hook `{hook}` has no delivery `{delivery}` that waits")]
    NoSuchDelivery { hook: HookName, delivery: String },
    #[error("a worker is sending delivery `{0}` now")]
    DeliveryInFlight(String),
    #[error("the queue `default` cannot be removed")]
    DefaultQueue,
    #[error("queue `{queue}` was not removed: it has {}", if *jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") })]
    QueueInUse { queue: QueueName, jobs: u64 },
    #[error("queue `{queue}` was not removed: schedule `{schedule}` enqueues jobs there")]
    ScheduledQueue { queue: QueueName, schedule: ScheduleName },
    #[error("{}", unusable_folder(cwd, *is_file))]
    UnusableFolder {
        cwd: String,
        /// It exists, but is not a directory.
        is_file: bool,
    },
    #[error("`{}` already exists", .0.display())]
    FileExists(PathBuf),
    #[error("`{}` is the queue's own database", .0.display())]
    BackupOntoItself(PathBuf),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error("no home directory: none of --home, QUEUECTL_HOME and HOME is set")]
    NoHome,
    #[error("there is no queue at `{address}`")]
    NoQueueOnServer {
        /// Without a password.
        address: String,
    },
    #[error("there is no queue in `{}`", missing.display())]
    NoQueue {
        /// The home, or the database that is elsewhere.
        missing: PathBuf,
        home: PathBuf,
    },
    #[error("the queue in `{}` belongs to {}, but you are {}", home.display(), user::name_of(*owner), user::name_of(user::number()))]
    ForeignHome { home: PathBuf, owner: u32 },
    #[error("refused to use the home `{}`", home.display())]
    ExposedHome {
        home: PathBuf,
        #[source]
        source: OwnershipError,
    },
    #[error("failed to create the home `{}`", home.display())]
    ForeignFolder {
        home: PathBuf,
        #[source]
        source: OwnershipError,
    },
    #[error("failed to parse the settings file `{}` ({problem})", path.display())]
    BadConfigFile { path: PathBuf, problem: String },
    #[error("the path of the store is empty")]
    EmptyStore,
    /// The address is not quoted: there may be a password in it.
    #[error("unsupported store URL: a store is a path or a postgres:// URL")]
    UnknownStore,
    #[error("the address of the PostgreSQL store is invalid")]
    Address(#[from] AddressError),
    #[error("`{}` has a password in it and can be read by others (mode {mode:04o})", path.display())]
    ExposedPassword { path: PathBuf, mode: u32 },
    #[error("`queuectl {refused}` is for stores that are a file, and this one is in PostgreSQL")]
    NotInFile { refused: &'static str, schema: String },
}

impl<R: std::error::Error> From<WriteError<R>> for OpError
where
    Self: From<R>,
{
    fn from(error: WriteError<R>) -> Self {
        match error {
            WriteError::Store(error) => Self::Store(error),
            WriteError::Refused(refusal) => refusal.into(),
        }
    }
}

impl From<ImportError> for OpError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            error @ (ImportError::IdTaken(_)
            | ImportError::NotEmpty { .. }
            | ImportError::KeyTaken { .. }
            | ImportError::Malformed { .. }
            | ImportError::NotJson { .. }
            | ImportError::Unreadable { .. }) => Self::Import(error),
        }
    }
}

impl OpError {
    /// The error for a name that is not among the known ones.
    pub fn no_such<'a>(what: Named, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::NoSuch { what, name: name.to_owned(), nearest: nearest(name, known).map(str::to_owned) }
    }

    /// The jobs that may or may not have been stored.
    pub fn unacknowledged(&self) -> &[JobId] {
        let error = if let Self::Stopped { source, .. } = self { source } else { self };
        if let Self::Unacknowledged { ids, .. } = error { ids } else { &[] }
    }
}

fn unusable_folder(cwd: &str, is_file: bool) -> String {
    let problem = if is_file { "is not a directory" } else { "does not exist" };
    format!("the working directory `{cwd}` {problem}")
}

/// The error with its chain of causes in one line: `what (why: because)`.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut causes = Vec::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    let text = if causes.is_empty() { error.to_string() } else { format!("{error} ({})", causes.join(": ")) };
    without_os_codes(&text)
}

/// The text without the codes that Rust adds to the system's own messages: `Permission denied (os error 13)`.
pub fn without_os_codes(text: &str) -> String {
    const CODE: &str = " (os error ";
    let mut pieces = text.split(CODE);
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((code, rest)) if code.parse::<i32>().is_ok() => kept.push_str(rest),
            _ => kept.extend([CODE, piece]),
        }
    }
    kept
}

/// A problem in JSON that a user wrote, after its position: `column 2: key must be a string`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonProblem(String);

impl JsonProblem {
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    /// For a caller that names the line itself.
    pub fn without_line(error: &serde_json::Error) -> Self {
        let (problem, is_placed) = json_problem(error);
        Self(if is_placed { format!("column {}: {problem}", error.column()) } else { problem })
    }
}

impl From<&serde_json::Error> for JsonProblem {
    fn from(error: &serde_json::Error) -> Self {
        // Most JSON is one line, and in a file that line has a different number.
        if error.line() <= 1 {
            return Self::without_line(error);
        }
        let (problem, is_placed) = json_problem(error);
        let place = format!("line {}, column {}: ", error.line(), error.column());
        Self(if is_placed { place + &problem } else { problem })
    }
}

/// The problem in plain words, and whether it has a position.
fn json_problem(error: &serde_json::Error) -> (String, bool) {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(problem) => (in_plain_words(problem), true),
        None => (in_plain_words(&text), false),
    }
}

/// The messages of the JSON parser that assume a reader who knows its source.
fn in_plain_words(problem: &str) -> String {
    const SYNTAX: [(&str, &str); 9] = [
        ("EOF while parsing", "the JSON ends too early"),
        ("expected ident", "not valid JSON"),
        ("expected value", "expected a value"),
        ("key must be a string", "the name of a field must be in double quotes"),
        ("trailing characters", "unexpected text after the end"),
        ("trailing comma", "unexpected comma before the end"),
        ("control character", "a line break or control character in a string must be escaped"),
        ("recursion limit exceeded", "too deeply nested"),
        ("lone leading surrogate", "invalid escape in a string"),
    ];
    for (words, plain) in SYNTAX {
        // After the names of the fields around it.
        if let Some((fields, _)) = problem.split_once(words)
            && (fields.is_empty() || fields.ends_with("`: "))
        {
            return format!("{fields}{plain}");
        }
    }
    for marker in ["invalid type: ", "invalid value: "] {
        if let Some((before, rest)) = problem.split_once(marker)
            && let Some((found, expected)) = rest.rsplit_once(", expected ")
        {
            let expected = match expected {
                "a sequence" => "an array",
                "a map" => "an object",
                other => other,
            };
            return format!("{before}expected {expected}, not {}", found_value(found));
        }
    }
    problem.to_owned()
}

/// A value in an error, by the words of JSON.
fn found_value(found: &str) -> String {
    match found {
        "map" => return "an object".to_owned(),
        "sequence" => return "an array".to_owned(),
        _ => {}
    }
    for kind in ["integer ", "floating point ", "boolean "] {
        if let Some(value) = found.strip_prefix(kind) {
            return value.trim_matches('`').to_owned();
        }
    }
    found.strip_prefix("string ").unwrap_or(found).to_owned()
}

impl From<serde_json::Error> for OpError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json { is_job: error.is_data(), problem: JsonProblem::from(&error) }
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

fn timed_out(after: Duration, unfinished: &[(JobHandle, StateName)], of: usize) -> String {
    let after = format_span(after);
    if let (1, [(job, state)]) = (of, unfinished) {
        return format!("job {job} is still {} after {after}", state.name());
    }
    let shown = unfinished.iter().take(MAX_UNFINISHED_NAMED);
    let mut names: Vec<String> =
        shown.map(|(job, state)| format!("{} is {}", job.short(), state.name())).collect();
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
        return format!("stopped at line {line}, {before}; whether more was stored is unknown");
    }
    // If the store failed, the error is not in the line.
    if stored == 0 && !matches!(why, OpError::Store(_)) {
        return format!("line {line} was refused; nothing was stored");
    }
    format!("stopped at line {line}, {before}")
}
