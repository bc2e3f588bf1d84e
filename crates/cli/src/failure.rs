//! How a run ends that did not do what was asked: one line, a hint where it helps, and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

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

/// PRODUCT's exit codes, but for 0 and those that `run` passes on.
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
    /// The jobs of which nobody knows whether they are stored.
    ids: Vec<JobId>,
}

/// The longest message: what was typed may be quoted in it.
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

    /// What clap says about arguments, in our form: its first paragraph, and its tip.
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
                .with_hint("`queuectl worker stop` lets workers finish what they run, and ends them"),
            EngineError::CannotForget { .. } => Self::new(Exit::Conflict, chain(&error)).with_hint(
                "a worker gives them back when that has ended; `queuectl status` names what is known",
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
        | OpError::CannotWrite { .. } => Exit::Failed,
        OpError::PartlyDone { source, .. } => match exit_of_store(source) {
            exit @ (Exit::Unknown | Exit::Corrupt) => exit,
            // Something was changed, which the code for this denies.
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

/// How `doctor` ends where it found an error: like every other verb on a store that cannot be used, else with 1.
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
        | StoreError::FileLimit
        | StoreError::ReadOnly
        | StoreError::Busy { .. }
        | StoreError::Changing
        | StoreError::NetworkFilesystem { .. }
        | StoreError::NotOwn(_)
        | StoreError::OldLibrary { .. } => Exit::Unavailable,
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
            Some(format!("cancel or remove those first; `queuectl graph {id}` shows them"))
        }
        Conflict::Cycle { through } => Some(format!(
            "wait until job `{through}` is finished, or cancel it; `queuectl graph {id}` shows how they depend"
        )),
        Conflict::State(_) | Conflict::KeyTaken { .. } | Conflict::TooLate => None,
    }
}

fn hint_for(error: &OpError) -> Option<String> {
    let hint = match error {
        OpError::NoSuchJob(_) => "`queuectl list` shows the jobs that are kept",
        OpError::NoSuchSchedule { nearest, .. } => {
            return Some(did_you_mean(nearest.as_deref(), "`queuectl schedule list` shows the schedules"));
        }
        OpError::ScheduleTaken(_) => "to change it, remove it and add it again; its jobs stay",
        OpError::Schedule(ScheduleError::UnknownZone { nearest, .. }) => {
            let zones = "zones have names such as Europe/Berlin, America/New_York and UTC";
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
        OpError::NoSuchAttempt { known, .. } => return Some(attempts(known)),
        OpError::Unacknowledged { ids, witness, .. } => return Some(ask_again(ids, witness.as_ref())),
        OpError::Refused(EnqueueRefusal::IdTaken(_)) => {
            "with --if-absent the job that has this id is returned"
        }
        OpError::BadLine { source, .. } | OpError::Stopped { stored: 0, source, .. }
            if matches!(**source, OpError::Refused(EnqueueRefusal::UnknownDependency(_))) =>
        {
            "a line can depend on earlier lines and on jobs that are there, not on later lines"
        }
        OpError::BadLine { source, .. } => return hint_for(source),
        OpError::Stopped { stored: 0, source, .. } if exit_of(source) != Exit::Unknown => {
            return hint_for(source);
        }
        OpError::Stopped { line, source, .. } => {
            if let OpError::Unacknowledged { ids, witness: Some(witness), .. } = &**source {
                return Some(lines_or_none(*line, ids.len(), witness));
            }
            "what was stored stays; give ids and --if-absent to repeat the whole input safely"
        }
        OpError::WaitsForItself { .. } => WAIT_OUTSIDE,
        OpError::OnlySlotTaken { queue, .. } => return Some(more_places(queue)),
        OpError::PartlyDone { .. } => "the rest was left as it is; the same command goes on with it",
        OpError::ExposedHome { home, source } => return Some(advice_for_found(home, source)),
        OpError::ForeignFolder { home, source } => return Some(advice_for_making(home, source)),
        OpError::Store(error) => return hint_for_store(error),
        OpError::NoHome => "name a folder with --home",
        OpError::Import(ImportError::IdTaken(_)) => "with --if-absent jobs that are here already are skipped",
        OpError::Import(ImportError::Malformed { .. }) => {
            "correct that line, or export the queue again: all lines are taken in, or none"
        }
        OpError::FileExists(_) => "say --force to replace it",
        OpError::LiveWorkers { .. } => "stop them first: `queuectl worker stop`",
        OpError::Setting(SettingError::UnknownKey { nearest, .. }) => {
            return Some(settings(nearest.as_deref()));
        }
        OpError::Hook(HookError::UnknownEvent { nearest, .. }) => return Some(events(nearest.as_deref())),
        OpError::Hook(HookError::NoThreshold) => "say it with --above N",
        OpError::NoSuchHook { nearest, .. } => {
            return Some(did_you_mean(nearest.as_deref(), "`queuectl hook list` shows the hooks"));
        }
        OpError::HookTaken(_) => "choose another name, or `queuectl hook remove` it first",
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
    did_you_mean(nearest, &format!("the events are {}", HookEvent::ALL.map(HookEvent::name).join(", ")))
}

/// For a job that would wait for itself.
const WAIT_OUTSIDE: &str =
    "a job ends before what depends on it begins: wait outside of it, or let what follows depend on it";

/// For a job that would wait in a queue in which it takes the only place.
fn more_places(queue: &QueueName) -> String {
    format!(
        "use another queue, allow more (`queuectl queue set {queue} --concurrency 2`), or enqueue it and do not wait \
         for it"
    )
}

fn hint_for_store(error: &StoreError) -> Option<String> {
    let hint = match error {
        StoreError::NotOwn(refused) => return Some(advice(refused)),
        StoreError::BadSetting { key, .. } => return Some(how_to_repair(key)),
        StoreError::OutcomeUnknown { .. } => "ask again with the same id",
        StoreError::TooNew { .. } => "use the queuectl that last opened this store, or a newer one",
        StoreError::OldLibrary { .. } => "use a queuectl that was built with the SQLite that comes with it",
        StoreError::NetworkFilesystem { .. } => "choose another folder with --home",
        StoreError::Full => "make room on the disk that the home is on, and try again",
        StoreError::FileLimit => "raise the limit (`ulimit -f`), and try again",
        StoreError::Busy { holder: Some(Holder { pid, is_stopped: true, .. }), .. } => {
            return Some(format!("`kill -CONT {pid}` lets it go on, `kill -KILL {pid}` ends it"));
        }
        StoreError::Busy { .. } => "`queuectl doctor` tells who is in the way",
        StoreError::ReadOnly => "the disk may be mounted read-only; `queuectl doctor` tells more",
        StoreError::CannotOpen { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Changing
        | StoreError::Corrupt { .. }
        | StoreError::NotAStore { .. }
        | StoreError::Malformed { .. } => "`queuectl doctor` tells more",
        StoreError::NoSuchJob(_) | StoreError::NoSuchWorker(_) => return None,
    };
    Some(hint.to_owned())
}

/// Those of which nobody knows whether they are stored.
fn unacknowledged(error: &OpError) -> &[JobId] {
    let error = if let OpError::Stopped { source, .. } = error { source } else { error };
    if let OpError::Unacknowledged { ids, .. } = error { ids } else { &[] }
}

/// How to find out, and make it so.
fn ask_again(ids: &[JobId], witness: Option<&JobId>) -> String {
    match (ids, witness) {
        ([id], _) => format!("ask again with the same id: `--id {id} --if-absent`"),
        (_, Some(witness)) => {
            format!("all of them or none was stored: `queuectl show {witness}` tells which")
        }
        // There may be too many to name them here.
        (_, None) => "ask again with the same ids and --if-absent; with --json they are told".to_owned(),
    }
}

/// The same for lines, of which so many were to be stored with one commit.
fn lines_or_none(line: u64, count: usize, witness: &JobId) -> String {
    if count == 1 {
        return format!("`queuectl show {witness}` tells whether the job of line {line} was stored");
    }
    let jobs = jobs(count as u64);
    format!("of {jobs} from line {line} on all or none was stored: `queuectl show {witness}` tells which")
}

/// Which attempts there are.
fn attempts(known: &[u32]) -> String {
    match known {
        [] => "it has not run yet".to_owned(),
        [only] => format!("there is attempt {only}"),
        [first, .., last] => format!("there are attempts {first} to {last}"),
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

/// Says what went wrong on standard error.
pub(super) fn report(failure: &Failure, as_json: bool, color: ColorChoice) -> ExitCode {
    // Where even standard error is closed there is nobody left to tell.
    let _ = if as_json { report_json(failure) } else { report_text(failure, color) };
    failure.exit.into()
}

/// As much of a message as anybody wants to read.
fn cut(message: &str) -> String {
    let mut kept: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    if kept.len() < message.len() {
        kept.push('…');
    }
    kept
}

fn report_json(failure: &Failure) -> io::Result<()> {
    let hint = failure.hint.as_deref().map(cut);
    let value = FailureJson {
        error: &cut(&failure.message),
        exit_code: failure.exit as u8,
        hint: hint.as_deref(),
        // Uncut: nobody else knows those that were made up.
        ids: failure.ids.iter().map(JobId::as_str).collect(),
    };
    let mut out = io::stderr().lock();
    write_json(&mut out, &value, false)?;
    out.write_all(b"\n")
}

fn report_text(failure: &Failure, color: ColorChoice) -> io::Result<()> {
    let mut out = notes(color);
    let (red, dim) = (anstyle::AnsiColor::Red.on_default().bold(), anstyle::Style::new().dimmed());
    writeln!(out, "{red}error:{red:#} {}", printable(&cut(&failure.message)))?;
    if let Some(hint) = &failure.hint {
        writeln!(out, "{dim}hint: {}{dim:#}", printable(&cut(hint)))?;
    }
    Ok(())
}
