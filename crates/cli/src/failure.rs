//! Failures as the user sees them: one line, a hint where one helps, and an exit code.

use std::io::{self, Write};
use sys::program::ExitCode;

use clap::ColorChoice;
use serde::Serialize;

use super::context::notes;
use super::render::text::{jobs, printable};
use domain::hook::{HookError, HookEvent};
use domain::schedule::ScheduleError;
use domain::settings::{SettingError, SettingKey};
use domain::values::name::{BatchName, JobId, QueueName};
use engine::EngineError;
use ops::OpError;
use ops::config::how_to_repair;
use ops::error::chain;
use ops::escape::write_json;
use ops::home::ownership::{advice, advice_for_found, advice_for_making};
use proof::ProofError;
use store::transfer::ImportError;
use store::{Conflict, EnqueueRefusal, StoreError};
use sys::process::Holder;

/// The exit codes of the program, except 0 and the codes of commands that `run` passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Unavailable = 5,
    Unknown = 6,
    Corrupt = 7,
    TimedOut = 124,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
    hint: Option<String>,
    /// Jobs that may or may not have been stored.
    ids: Vec<JobId>,
}

/// Longer messages are truncated: they may quote input of any length.
const MAX_MESSAGE_CHARS: usize = 1_000;

impl Failure {
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, ids: Vec::new() }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Converts clap's error: its first paragraph becomes the message, its tip (else the usage line) the hint.
    pub(super) fn from_usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message: Vec<&str> = message.lines().map(str::trim).collect();
        let message = message.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = tip.map(str::to_owned).or_else(|| usage.map(|usage| format!("usage: {usage}")));
        Self { hint, ..Self::usage(message) }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let (hint, ids) = (hint_for(&error), unacknowledged(&error).to_vec());
        Self { hint, ids, ..Self::new(exit_of(&error), chain(&error)) }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        OpError::from(error).into()
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::WorkerLives { .. } => Self::new(Exit::Conflict, chain(&error))
                .with_hint("`queuectl worker stop` stops workers after they finish their running jobs"),
            EngineError::CannotForget { .. } => Self::new(Exit::Conflict, chain(&error)).with_hint(
                "a worker releases them once those processes have ended; `queuectl status` shows the details",
            ),
            EngineError::System { .. }
            | EngineError::CannotMake { .. }
            | EngineError::NoChildrenList
            | EngineError::NoSupervisor
            | EngineError::DeclaredDead
            | EngineError::CannotStart { .. }
            | EngineError::GaveUp { .. } => Self::new(Exit::Failed, chain(&error)),
        }
    }
}

impl From<ProofError> for Failure {
    fn from(error: ProofError) -> Self {
        Self::new(Exit::Failed, chain(&error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failed, format!("failed to write the output ({error})"))
    }
}

fn exit_of(error: &OpError) -> Exit {
    match error {
        OpError::Store(error)
        | OpError::BadBackup { source: error, .. }
        | OpError::Import(ImportError::Store(error)) => exit_of_store(error),
        OpError::Refused(EnqueueRefusal::IdTaken(_))
        | OpError::Conflict { .. }
        | OpError::NotDead { .. }
        | OpError::ScheduleTaken(_)
        | OpError::HookTaken(_)
        | OpError::FileExists(_)
        | OpError::LiveWorkers { .. }
        | OpError::RestoreUnderWay
        | OpError::WaitsForItself { .. }
        | OpError::OnlySlotTaken { .. }
        | OpError::Import(ImportError::IdTaken(_) | ImportError::KeyTaken { .. }) => Exit::Conflict,
        OpError::Refused(EnqueueRefusal::UnknownDependency(_))
        | OpError::NoSuchJob(_)
        | OpError::NoSuchSchedule { .. }
        | OpError::NoSuchHook { .. }
        | OpError::NoSuchBatch { .. }
        | OpError::Removed(_)
        | OpError::NoSuchAttempt { .. }
        | OpError::OutputGone { .. } => Exit::NotFound,
        OpError::Unsuccessful { .. }
        | OpError::UnsuccessfulBatch { .. }
        | OpError::HookFailed { .. }
        | OpError::LogsNotImported { .. }
        | OpError::CannotWrite { .. } => Exit::Failed,
        OpError::PartlyDone { source, .. } => match exit_of_store(source) {
            exit @ (Exit::Unknown | Exit::Corrupt) => exit,
            // `Unavailable` would promise that nothing was changed.
            Exit::Unavailable
            | Exit::Failed
            | Exit::Usage
            | Exit::NotFound
            | Exit::Conflict
            | Exit::TimedOut => Exit::Failed,
        },
        OpError::Unacknowledged { .. } => Exit::Unknown,
        OpError::TimedOut { .. } | OpError::BatchTimedOut { .. } => Exit::TimedOut,
        OpError::Stopped { stored, source, .. } => match exit_of(source) {
            Exit::Unavailable => Exit::Unavailable,
            Exit::Unknown => Exit::Unknown,
            Exit::Corrupt => Exit::Corrupt,
            Exit::TimedOut => Exit::TimedOut,
            Exit::Failed | Exit::Usage | Exit::NotFound | Exit::Conflict if *stored == 0 => Exit::Usage,
            Exit::Failed | Exit::Usage | Exit::NotFound | Exit::Conflict => Exit::Failed,
        },
        OpError::BadLine { source, .. } => exit_of(source),
        OpError::CannotMake { .. }
        | OpError::CannotReadLog { .. }
        | OpError::ExposedHome { .. }
        | OpError::ForeignFolder { .. } => Exit::Unavailable,
        OpError::DamagedOutput { .. } | OpError::DamagedLog { .. } => Exit::Corrupt,
        OpError::Request(_)
        | OpError::Json { .. }
        | OpError::Refused(EnqueueRefusal::Cycle(_) | EnqueueRefusal::TooLate)
        | OpError::BadId { .. }
        | OpError::BadHookName { .. }
        | OpError::Hook(_)
        | OpError::Setting(_)
        | OpError::Schedule(_)
        | OpError::Each(_)
        | OpError::LineTooLong { .. }
        | OpError::CannotRead { .. }
        | OpError::BackupOntoItself(_)
        | OpError::Edit(_)
        | OpError::RelativeFolder
        | OpError::Import(ImportError::Malformed { .. } | ImportError::Unreadable { .. })
        | OpError::NoHome
        | OpError::BadConfigFile { .. }
        | OpError::EmptyStore
        | OpError::UnknownStore
        | OpError::NoPostgres => Exit::Usage,
    }
}

/// The exit code of `doctor` when it found an error: that of any other verb if the store cannot be used, else 1.
pub(super) fn exit_of_diagnosis(refusal: Option<&OpError>) -> Exit {
    match refusal.map(exit_of) {
        Some(exit @ (Exit::Unavailable | Exit::Corrupt)) => exit,
        Some(
            Exit::Failed | Exit::Usage | Exit::NotFound | Exit::Conflict | Exit::Unknown | Exit::TimedOut,
        )
        | None => Exit::Failed,
    }
}

fn exit_of_store(error: &StoreError) -> Exit {
    match error {
        StoreError::CannotOpen { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Full
        | StoreError::ReadOnly
        | StoreError::Busy { .. }
        | StoreError::Changing
        | StoreError::Obstacle { .. }
        | StoreError::NotOwn(_) => Exit::Unavailable,
        StoreError::OutcomeUnknown { .. } => Exit::Unknown,
        StoreError::Corrupt { .. }
        | StoreError::NotAStore { .. }
        | StoreError::TooNew { .. }
        | StoreError::BadSetting { .. }
        | StoreError::Malformed { .. } => Exit::Corrupt,
        StoreError::NoSuchJob(_) | StoreError::NoSuchWorker(_) => Exit::NotFound,
    }
}

fn hint_for_conflict(id: &JobId, conflict: &Conflict) -> Option<String> {
    match conflict {
        Conflict::WaitedFor { .. } => {
            Some(format!("cancel or remove the dependent jobs first; `queuectl graph {id}` shows them"))
        }
        Conflict::Cycle { through } => Some(format!(
            "wait until job `{through}` has finished, or cancel it; `queuectl graph {id}` shows the dependencies"
        )),
        Conflict::State(_) | Conflict::KeyTaken { .. } | Conflict::TooLate => None,
    }
}

/// For a job that does not exist.
const HOW_TO_LIST_JOBS: &str = "`queuectl list` shows all jobs";

fn hint_for(error: &OpError) -> Option<String> {
    let hint = match error {
        OpError::NoSuchJob(_) => HOW_TO_LIST_JOBS,
        OpError::NoSuchSchedule { nearest, .. } => {
            return Some(did_you_mean(nearest.as_deref(), "`queuectl schedule list` shows the schedules"));
        }
        OpError::ScheduleTaken(_) => "to change it, remove it and add it again; its jobs are kept",
        OpError::Schedule(ScheduleError::UnknownZone { nearest, .. }) => {
            let zones = "time zones have names like Europe/Berlin, America/New_York and UTC";
            return Some(did_you_mean(nearest.as_deref(), zones));
        }
        OpError::NoSuchBatch { nearest, .. } => {
            return Some(did_you_mean(
                nearest.as_ref().map(BatchName::as_str),
                "`queuectl batch list` shows the batches",
            ));
        }
        OpError::UnsuccessfulBatch { name, .. } => {
            return Some(format!("`queuectl list --batch {name} --state dead,cancelled` shows them"));
        }
        OpError::Conflict { id, conflict } => return hint_for_conflict(id, conflict),
        OpError::NotDead { id, .. } => return Some(format!("`queuectl show {id}` shows it")),
        OpError::NoSuchAttempt { known, .. } => return Some(attempts(known)),
        OpError::Unacknowledged { ids, witness, .. } => return Some(retry_hint(ids, witness.as_ref())),
        OpError::Refused(EnqueueRefusal::IdTaken(_)) => "--if-absent returns the existing job instead",
        OpError::BadLine { source, .. } | OpError::Stopped { stored: 0, source, .. }
            if matches!(**source, OpError::Refused(EnqueueRefusal::UnknownDependency(_))) =>
        {
            "a line can depend on earlier lines and on existing jobs, not on later lines"
        }
        OpError::BadLine { source, .. } => return hint_for(source),
        OpError::Stopped { stored: 0, source, .. } if exit_of(source) != Exit::Unknown => {
            return hint_for(source);
        }
        OpError::Stopped { line, source, .. } => {
            if let OpError::Unacknowledged { ids, witness: Some(witness), .. } = &**source {
                return Some(retry_hint_for_lines(*line, ids.len(), witness));
            }
            "the jobs stored so far are kept; to repeat the whole input safely, give every job an id and use --if-absent"
        }
        OpError::WaitsForItself { .. } => SELF_WAIT_HINT,
        OpError::OnlySlotTaken { queue, .. } => return Some(capacity_hint(queue)),
        OpError::PartlyDone { .. } => "run the same command again to change the rest",
        OpError::ExposedHome { home, source } => return Some(advice_for_found(home, source)),
        OpError::ForeignFolder { home, source } => return Some(advice_for_making(home, source)),
        OpError::Store(error) => return hint_for_store(error),
        OpError::NoHome => "choose a directory with --home",
        OpError::Import(ImportError::IdTaken(_)) => "--if-absent skips jobs that already exist",
        OpError::Import(ImportError::Malformed { .. }) => {
            "nothing was imported; fix that line or export the queue again"
        }
        OpError::FileExists(_) => "use --force to replace it",
        OpError::LiveWorkers { .. } => "stop them first: `queuectl worker stop`",
        OpError::Setting(SettingError::UnknownKey { nearest, .. }) => {
            return Some(settings(nearest.as_deref()));
        }
        OpError::Hook(HookError::UnknownEvent { nearest, .. }) => return Some(events(nearest.as_deref())),
        OpError::Hook(HookError::NoThreshold) => "set it with --above N",
        OpError::NoSuchHook { nearest, .. } => {
            return Some(did_you_mean(nearest.as_deref(), "`queuectl hook list` shows the hooks"));
        }
        OpError::HookTaken(_) => "choose another name, or remove it first with `queuectl hook remove`",
        OpError::Request(_)
        | OpError::Json { .. }
        | OpError::Hook(_)
        | OpError::BadHookName { .. }
        | OpError::HookFailed { .. }
        | OpError::Refused(
            EnqueueRefusal::UnknownDependency(_) | EnqueueRefusal::Cycle(_) | EnqueueRefusal::TooLate,
        )
        | OpError::BadId { .. }
        | OpError::Removed(_)
        | OpError::Unsuccessful { .. }
        | OpError::TimedOut { .. }
        | OpError::BatchTimedOut { .. }
        | OpError::OutputGone { .. }
        | OpError::DamagedOutput { .. }
        | OpError::DamagedLog { .. }
        | OpError::CannotReadLog { .. }
        | OpError::Setting(_)
        | OpError::Schedule(_)
        | OpError::Each(_)
        | OpError::LineTooLong { .. }
        | OpError::CannotRead { .. }
        | OpError::CannotMake { .. }
        | OpError::BackupOntoItself(_)
        | OpError::Edit(_)
        | OpError::Import(_)
        | OpError::LogsNotImported { .. }
        | OpError::CannotWrite { .. }
        | OpError::RelativeFolder
        | OpError::RestoreUnderWay
        | OpError::BadBackup { .. }
        | OpError::BadConfigFile { .. }
        | OpError::EmptyStore
        | OpError::UnknownStore
        | OpError::NoPostgres => return None,
    };
    Some(hint.to_owned())
}

fn did_you_mean(nearest: Option<&str>, otherwise: &str) -> String {
    nearest.map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean `{nearest}`?"))
}

fn settings(nearest: Option<&str>) -> String {
    did_you_mean(nearest, &format!("the settings are {}", SettingKey::ALL.map(SettingKey::name).join(", ")))
}

fn events(nearest: Option<&str>) -> String {
    did_you_mean(
        nearest,
        &format!("the events are {}", HookEvent::ALL.map(HookEvent::name_in_flags).join(", ")),
    )
}

/// For a job that would wait for itself.
const SELF_WAIT_HINT: &str = "jobs that depend on this one start only after it ends: wait outside this job, or move \
                              the rest into a job that depends on them";

/// For a job that would wait for a job in the queue whose only slot it occupies itself.
fn capacity_hint(queue: &QueueName) -> String {
    format!(
        "use another queue, raise its limit (`queuectl queue set {queue} --concurrency 2`), or enqueue the job without \
         waiting for it"
    )
}

fn hint_for_store(error: &StoreError) -> Option<String> {
    let hint = match error {
        StoreError::NotOwn(refused) => return Some(advice(refused)),
        StoreError::BadSetting { key, .. } => return Some(how_to_repair(key)),
        StoreError::OutcomeUnknown { .. } => "repeat the command with the same id",
        StoreError::TooNew { .. } => "use the queuectl version that last opened this store, or a newer one",
        StoreError::Obstacle { advice, .. } => advice,
        StoreError::Full => "free some space on the disk of the home folder, then try again",
        StoreError::Busy { holder: Some(Holder { pid, is_stopped: true, .. }), .. } => {
            return Some(format!("`kill -CONT {pid}` resumes it, `kill -KILL {pid}` ends it"));
        }
        StoreError::Busy { .. } => "`queuectl doctor` shows which process holds the lock",
        StoreError::ReadOnly => "the disk may be mounted read-only; `queuectl doctor` shows more",
        StoreError::CannotOpen { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Changing
        | StoreError::Corrupt { .. }
        | StoreError::NotAStore { .. }
        | StoreError::Malformed { .. } => "`queuectl doctor` shows more",
        StoreError::NoSuchJob(_) => HOW_TO_LIST_JOBS,
        StoreError::NoSuchWorker(_) => return None,
    };
    Some(hint.to_owned())
}

/// The jobs that may or may not have been stored.
fn unacknowledged(error: &OpError) -> &[JobId] {
    let error = if let OpError::Stopped { source, .. } = error { source } else { error };
    if let OpError::Unacknowledged { ids, .. } = error { ids } else { &[] }
}

/// How to find out whether the jobs were stored, and to store them if not.
fn retry_hint(ids: &[JobId], witness: Option<&JobId>) -> String {
    match (ids, witness) {
        ([id], _) => format!("repeat the command with the same id: `--id {id} --if-absent`"),
        (_, Some(witness)) => {
            format!("either all or none were stored: `queuectl show {witness}` tells which")
        }
        // There may be too many ids to list them here.
        (_, None) => "repeat the command with the same ids and --if-absent; --json prints the ids".to_owned(),
    }
}

/// As [`retry_hint`], for `count` lines that one commit was to store.
fn retry_hint_for_lines(line: u64, count: usize, witness: &JobId) -> String {
    if count == 1 {
        return format!("`queuectl show {witness}` tells whether the job of line {line} was stored");
    }
    let jobs = jobs(count as u64);
    format!(
        "of the {jobs} from line {line} on, either all or none were stored: `queuectl show {witness}` tells which"
    )
}

/// The attempts that exist.
fn attempts(known: &[u32]) -> String {
    match known {
        [] => "it has not run yet".to_owned(),
        [only] => format!("it has only attempt {only}"),
        [first, .., last] => format!("it has attempts {first} to {last}"),
    }
}

#[derive(Serialize)]
struct FailureJson<'a> {
    error: &'a str,
    exit_code: u8,
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ids: Vec<&'a str>,
}

/// Prints the failure on standard error and returns its exit code.
pub(super) fn report(failure: &Failure, as_json: bool, color: ColorChoice) -> ExitCode {
    // An error here means that standard error is closed, and there is nowhere left to report it.
    let _ = if as_json { report_json(failure) } else { report_text(failure, color) };
    failure.exit.into()
}

fn truncate(message: &str) -> String {
    let mut kept: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    if kept.len() < message.len() {
        kept.push('…');
    }
    kept
}

fn report_json(failure: &Failure) -> io::Result<()> {
    let hint = failure.hint.as_deref().map(truncate);
    let value = FailureJson {
        error: &truncate(&failure.message),
        exit_code: failure.exit as u8,
        hint: hint.as_deref(),
        // Never truncated: the caller has no other way to learn generated ids.
        ids: failure.ids.iter().map(JobId::as_str).collect(),
    };
    let mut out = io::stderr().lock();
    write_json(&mut out, &value, false)?;
    out.write_all(b"\n")
}

fn report_text(failure: &Failure, color: ColorChoice) -> io::Result<()> {
    let mut out = notes(color);
    let (red, dim) = (anstyle::AnsiColor::Red.on_default().bold(), anstyle::Style::new().dimmed());
    writeln!(out, "{red}error:{red:#} {}", printable(&truncate(&failure.message)))?;
    if let Some(hint) = &failure.hint {
        writeln!(out, "{dim}hint: {}{dim:#}", printable(&truncate(hint)))?;
    }
    Ok(())
}
