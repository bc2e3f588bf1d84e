//! Failures as the user sees them: one line, a hint where one helps, and an exit code.

use std::io::{self, Write};
use std::path::Path;
use sys::program::ExitCode;

use clap::ColorChoice;
use serde::Serialize;

use super::context::{notes, width_of_notes, write_json_line};
use super::render::text::{jobs, printable, wrap_after_label};
use domain::hook::{HookError, HookEvent};
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use domain::job::template::TemplateError;
use domain::schedule::ScheduleError;
use domain::settings::{SettingError, SettingKey};
use domain::text::shell::quote_words;
use domain::values::name::{BatchName, JobId, QueueName};
use engine::EngineError;
use ops::OpError;
use ops::config::how_to_repair;
use ops::error::{Named, chain, without_os_codes};
use ops::home::location::StoreAddress;
use ops::home::ownership::{
    advice, advice_for_found, advice_for_making, advice_for_owner, how_to_create, word,
};
use ops::jobs::enqueue::each::EachError;
use proof::ProofError;
use store::postgres::identifier::quoted;
use store::sqlite::RestoreError;
use store::transfer::ImportError;
use store::{Conflict, EnqueueRefusal, MoveError, Relocation, StoreError};
use sys::fs::ownership::OwnershipError;
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
        let message: String = message.into();
        Self { exit, message: without_os_codes(&message), hint: None, ids: Vec::new() }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds a hint to the one that there may be.
    pub(super) fn with_further_hint(self, further: String) -> Self {
        let hint = match &self.hint {
            Some(hint) => format!("{hint}; {further}"),
            None => further,
        };
        self.with_hint(hint)
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Converts clap's error: its first paragraph becomes the message, the usage line the hint.
    pub(super) fn from_usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default();
        let message: Vec<&str> = message.lines().map(str::trim).collect();
        let message = message.join(" ");
        let message = message.strip_prefix("error: ").unwrap_or(&message);
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
        let hint = usage.map(|usage| format!("usage: {usage}"));
        Self { hint, ..Self::usage(message) }
    }
}

impl Failure {
    /// Appends to the hint.
    pub(super) fn and_hint(self, more: Option<String>) -> Self {
        let hints: Vec<String> = self.hint.into_iter().chain(more).collect();
        Self { hint: (!hints.is_empty()).then(|| hints.join("; ")), ..self }
    }
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        let ((exit, hint), ids) = (judge(&error), unacknowledged(&error).to_vec());
        Self { hint, ids, ..Self::new(exit, chain(&error)) }
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
            EngineError::System { ref source, .. } | EngineError::CannotMake { ref source, .. }
                if refused_file(source).is_some() =>
            {
                let hint = refused_file(source).map(advice);
                Self { hint, ..Self::new(Exit::Unavailable, chain(&error)) }
            }
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

/// The file that was not opened because of its owner or its kind.
fn refused_file(error: &io::Error) -> Option<&OwnershipError> {
    error.get_ref()?.downcast_ref()
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

/// An exit code, and a hint where one helps.
type Judgement = (Exit, Option<String>);

fn with_hint(exit: Exit, hint: impl Into<String>) -> Judgement {
    (exit, Some(hint.into()))
}

fn judge(error: &OpError) -> Judgement {
    match error {
        OpError::Store(error) | OpError::Move(MoveError::Store(error)) => judge_store(error),
        OpError::Restore(error) => judge_restore(error),
        OpError::Import(error) => judge_import(error),
        OpError::Move(MoveError::Workers(_)) => with_hint(Exit::Conflict, "--wait stops them first"),
        OpError::NotEmpty { .. } => with_hint(Exit::Conflict, EMPTY_STORE),
        OpError::UnfinishedCopy { to } => with_hint(Exit::Conflict, how_to_clear(to)),
        OpError::BadLine { source, .. } => judge_line(source),
        OpError::Stopped { line, stored, source } => judge_stop(*line, *stored, source),
        OpError::PartlyDone { source, .. } => judge_part(source),
        OpError::Unacknowledged { ids, witness, .. } => {
            with_hint(Exit::Unknown, retry_hint(ids, witness.as_ref()))
        }
        OpError::TimedOut { unfinished, .. } => (Exit::TimedOut, unfinished.first().map(how_to_watch)),
        OpError::BatchTimedOut { name, .. } => with_hint(Exit::TimedOut, progress_of(name)),
        OpError::UnsuccessfulBatch { name, .. } => with_hint(
            Exit::Failed,
            format!("`queuectl list --batch {name} --state dead,cancelled` shows them"),
        ),
        OpError::Unsuccessful { .. }
        | OpError::HookFailed { .. }
        | OpError::LogsNotImported { .. }
        | OpError::CannotWrite { .. } => (Exit::Failed, None),
        OpError::ExposedHome { home, source } => with_hint(Exit::Unavailable, advice_for_found(home, source)),
        OpError::ForeignHome { home, owner } => with_hint(Exit::Unavailable, advice_for_owner(home, *owner)),
        OpError::ForeignFolder { home, source } => {
            with_hint(Exit::Unavailable, advice_for_making(home, source))
        }
        OpError::CannotMake { .. } | OpError::CannotReadLog { .. } => (Exit::Unavailable, None),
        OpError::DamagedOutput { .. } | OpError::DamagedLog { .. } => (Exit::Corrupt, None),
        OpError::NoQueueOnServer { .. } => with_hint(Exit::NotFound, CREATE_ON_SERVER),
        OpError::NoQueue { missing, home } => with_hint(Exit::NotFound, how_to_create(missing, home)),
        OpError::NoSuchJob(_) | OpError::Refused(EnqueueRefusal::UnknownDependency(_)) => {
            with_hint(Exit::NotFound, HOW_TO_LIST_JOBS)
        }
        OpError::NoSuch { what, nearest, .. } => {
            with_hint(Exit::NotFound, did_you_mean(nearest.as_deref(), how_to_list(*what)))
        }
        OpError::NoSuchAttempt { known, .. } => with_hint(Exit::NotFound, attempts(known)),
        OpError::Removed(_) | OpError::OutputElsewhere { .. } => (Exit::NotFound, None),
        OpError::IncompleteLine(_) => with_hint(Exit::Usage, HOW_TO_WRITE_LINES),
        OpError::OutputMissing { .. } => with_hint(Exit::NotFound, HOW_LONG_OUTPUT_IS_KEPT),
        OpError::Refused(EnqueueRefusal::IdTaken(_)) => {
            with_hint(Exit::Conflict, "--if-absent returns the existing job instead")
        }
        OpError::Conflict { job, conflict, .. } => {
            (Exit::Conflict, hint_for_conflict(&job.short(), conflict))
        }
        OpError::NotDead { job, .. } => {
            with_hint(Exit::Conflict, format!("`queuectl show {}` shows it", job.short()))
        }
        OpError::ScheduleTaken(name) => {
            with_hint(Exit::Conflict, format!("`queuectl schedule edit {name}` changes it"))
        }
        OpError::ScheduleChanged(name) => with_hint(
            Exit::Conflict,
            format!("nothing was changed; `queuectl schedule show {name}` shows it"),
        ),
        OpError::HookTaken(_) => with_hint(Exit::Conflict, HOW_TO_REPLACE_HOOKS),
        OpError::QueueInUse { queue, .. } => with_hint(Exit::Conflict, how_to_empty(queue)),
        OpError::ScheduledQueue { schedule, .. } => with_hint(
            Exit::Conflict,
            format!("remove the schedule first: `queuectl schedule remove {schedule}`"),
        ),
        OpError::UnusableFolder { .. } => with_hint(
            Exit::Usage,
            "create it first; a job that depends on others may name a directory that they create",
        ),
        OpError::DefaultQueue => with_hint(Exit::Usage, "jobs go there unless they name another queue"),
        OpError::FileExists(_) => with_hint(Exit::Conflict, "use --force to replace it"),
        OpError::WaitsForItself { .. } => with_hint(Exit::Conflict, SELF_WAIT_HINT),
        OpError::OnlySlotTaken { queue, .. } => with_hint(Exit::Conflict, capacity_hint(queue)),
        OpError::Schedule(error) => (Exit::Usage, hint_for_schedule(error)),
        OpError::Hook(error) => (Exit::Usage, hint_for_hook(error)),
        OpError::Each(error) => (Exit::Usage, hint_for_each(error)),
        OpError::Setting(SettingError::ForeignKey { instead, .. }) => with_hint(Exit::Usage, *instead),
        OpError::Setting(SettingError::UnknownKey { nearest, .. }) => {
            with_hint(Exit::Usage, settings(nearest.as_deref()))
        }
        OpError::AmbiguousCause { .. } => with_hint(Exit::Usage, how_to_list(Named::Cause)),
        OpError::NoHome => with_hint(Exit::Usage, "choose a directory with --home"),
        OpError::Request(_)
        | OpError::Json { .. }
        | OpError::Refused(EnqueueRefusal::Cycle(_) | EnqueueRefusal::TooLate)
        | OpError::BadName { .. }
        | OpError::Setting(_)
        | OpError::LineTooLong { .. }
        | OpError::DocumentTooLong { .. }
        | OpError::CannotRead { .. }
        | OpError::BackupOntoItself(_)
        | OpError::CopyOntoItself
        | OpError::Edit(_)
        | OpError::RelativeFolder
        | OpError::BadConfigFile { .. }
        | OpError::EmptyStore
        | OpError::UnknownStore => (Exit::Usage, None),
        OpError::Address(error) => (Exit::Usage, error.hint()),
        OpError::ExposedPassword { path, .. } => with_hint(Exit::Usage, how_to_hide(path)),
        OpError::NotInFile { schema, .. } => with_hint(Exit::Usage, how_to_copy(schema)),
    }
}

/// For a change of many jobs that stopped in the middle.
fn judge_part(source: &StoreError) -> Judgement {
    let exit = judge_store(source).0;
    // `Unavailable` would promise that nothing was changed.
    let exit = if matches!(exit, Exit::Unknown | Exit::Corrupt) { exit } else { Exit::Failed };
    with_hint(exit, "run the same command again to change the rest")
}

const HOW_TO_REPLACE_HOOKS: &str = "choose another name, or remove it first with `queuectl hook remove`";

/// For a schema on a server without a queue.
const CREATE_ON_SERVER: &str =
    "check the database and the schema in the address; `queuectl store migrate` creates a queue there";

/// For a copy to a store that is in use.
const EMPTY_STORE: &str = "name a store without a queue, such as another schema: `postgres://…?schema=NAME`";

/// For a copy that was interrupted.
fn how_to_clear(to: &StoreAddress) -> String {
    let delete = match to {
        StoreAddress::Sqlite(path) => format!("`rm {}*`", word(path)),
        StoreAddress::Postgres(address) => {
            format!("the SQL `drop schema {} cascade`", quoted(&address.schema))
        }
    };
    format!("the old store is complete and in use; delete the copy with {delete}, then copy again")
}

/// For a settings file with a password that others can read.
fn how_to_hide(path: &Path) -> String {
    format!("run `chmod 600 {}`, or move the password to ~/.pgpass", word(path))
}

/// For a queue on a server, which has no file to copy.
fn how_to_copy(schema: &str) -> String {
    let schema = quote_words(&[quoted(schema)]);
    format!("use `pg_dump -n {schema}` and `pg_restore`, or `queuectl export` and `queuectl import`")
}

fn judge_restore(error: &RestoreError) -> Judgement {
    match error {
        RestoreError::Store(error) => judge_store(error),
        RestoreError::BadBackup { source, .. } => (judge_store(source).0, None),
        RestoreError::Workers { .. } => with_hint(Exit::Conflict, "stop them first: `queuectl worker stop`"),
        RestoreError::UnderWay => (Exit::Conflict, None),
    }
}

fn judge_import(error: &ImportError) -> Judgement {
    match error {
        ImportError::Store(error) => (judge_store(error).0, None),
        ImportError::IdTaken(_) => with_hint(Exit::Conflict, "--if-absent skips jobs that already exist"),
        ImportError::NotEmpty { .. } => with_hint(Exit::Conflict, EMPTY_STORE),
        ImportError::KeyTaken { .. } => (Exit::Conflict, None),
        ImportError::Malformed { .. } => {
            with_hint(Exit::Usage, "nothing was imported; fix that line or export the queue again")
        }
        ImportError::NotJson { .. } | ImportError::Unreadable { .. } => (Exit::Usage, None),
    }
}

/// For a refused line of the input, if nothing was stored.
fn judge_line(source: &OpError) -> Judgement {
    let judgement = judge(source);
    if let OpError::Refused(EnqueueRefusal::UnknownDependency(_)) = source {
        let hint = "a line can depend on earlier lines and on existing jobs, not on later lines";
        return with_hint(judgement.0, hint);
    }
    judgement
}

/// For the line at which reading the input stopped, after some jobs may have been stored.
fn judge_stop(line: u64, stored: u64, source: &OpError) -> Judgement {
    let (of_line, hint) = judge_line(source);
    let exit = match of_line {
        Exit::Unavailable | Exit::Unknown | Exit::Corrupt | Exit::TimedOut => of_line,
        Exit::Failed | Exit::Usage | Exit::NotFound | Exit::Conflict if stored == 0 => Exit::Usage,
        Exit::Failed | Exit::Usage | Exit::NotFound | Exit::Conflict => Exit::Failed,
    };
    if stored == 0 && of_line != Exit::Unknown {
        return (exit, hint);
    }
    if let OpError::Unacknowledged { ids, witness: Some(witness), .. } = source {
        return with_hint(exit, retry_hint_for_lines(line, ids.len(), witness));
    }
    with_hint(
        exit,
        "the jobs stored so far are kept; to repeat the whole input safely, give every job an id and use --if-absent",
    )
}

/// The exit code of `doctor` when it found an error: that of any other verb if the store cannot be used, else 1.
pub(super) fn exit_of_diagnosis(refusal: Option<&OpError>) -> Exit {
    let exit = refusal.map(|error| judge(error).0);
    exit.filter(|exit| matches!(exit, Exit::Unavailable | Exit::Corrupt)).unwrap_or(Exit::Failed)
}

fn judge_store(error: &StoreError) -> Judgement {
    let doctor = "`queuectl doctor` shows more";
    match error {
        StoreError::NotOwn(refused) => with_hint(Exit::Unavailable, advice(refused)),
        StoreError::Unreachable(error) if error.is_incompatible() => with_hint(Exit::Corrupt, error.hint()),
        StoreError::Unreachable(error) => with_hint(Exit::Unavailable, error.hint()),
        StoreError::Obstacle { advice, .. } => with_hint(Exit::Unavailable, *advice),
        StoreError::Full => {
            with_hint(Exit::Unavailable, "free some space on the disk of the home directory, then try again")
        }
        StoreError::Busy { holder: Some(Holder { pid, is_stopped: true, .. }), .. } => {
            with_hint(Exit::Unavailable, format!("`kill -CONT {pid}` resumes it, `kill -KILL {pid}` ends it"))
        }
        StoreError::Busy { .. } => {
            with_hint(Exit::Unavailable, "`queuectl doctor` shows which process holds the lock")
        }
        StoreError::ReadOnly => with_hint(
            Exit::Unavailable,
            "its filesystem may be mounted read-only; `queuectl doctor` shows more",
        ),
        StoreError::CannotOpen { .. } | StoreError::Unavailable { .. } | StoreError::Changing => {
            with_hint(Exit::Unavailable, doctor)
        }
        StoreError::OutcomeUnknown { .. } => with_hint(Exit::Unknown, "repeat the command with the same id"),
        StoreError::NotPrimary => {
            with_hint(Exit::Unavailable, "name the primary in the address of the store, or try again later")
        }
        StoreError::Relocated(relocation) => with_hint(Exit::Unavailable, how_to_follow(relocation)),
        StoreError::TooOld { .. } => {
            with_hint(Exit::Corrupt, "bring it up to date: `queuectl store migrate`")
        }
        StoreError::TooNew { .. } => {
            with_hint(Exit::Corrupt, "use the queuectl version that last opened this store, or a newer one")
        }
        StoreError::BadSetting { key, .. } => with_hint(Exit::Corrupt, how_to_repair(key)),
        StoreError::Corrupt { .. } | StoreError::NotAStore { .. } | StoreError::Malformed { .. } => {
            with_hint(Exit::Corrupt, doctor)
        }
        StoreError::NoSuchJob(_) => with_hint(Exit::NotFound, HOW_TO_LIST_JOBS),
        StoreError::NoSuchWorker(_) => (Exit::NotFound, None),
    }
}

/// For a store that is not in use, because its queue moves or has moved.
pub(super) fn how_to_follow(relocation: &Relocation) -> String {
    match relocation {
        Relocation::MovedTo(_) => {
            "name that store with --store, in QUEUECTL_STORE, or as `store` in config.toml".to_owned()
        }
        Relocation::CopyOf(_) => "run the same `queuectl store copy` again".to_owned(),
    }
}

fn progress_of(batch: &BatchName) -> String {
    format!("`queuectl batch show {batch}` shows its progress")
}

/// For a job that has not finished yet.
fn how_to_watch((job, state): &(JobHandle, StateName)) -> String {
    let job = &job.short();
    match state {
        StateName::Processing => format!("`queuectl logs -f {job}` shows its output"),
        StateName::Pending
        | StateName::Failed
        | StateName::Completed
        | StateName::Dead
        | StateName::Cancelled => how_to_explain(job),
    }
}

fn how_to_explain(job: &str) -> String {
    format!("`queuectl explain {job}` shows what it waits for")
}

fn hint_for_conflict(id: &str, conflict: &Conflict) -> Option<String> {
    match conflict {
        Conflict::WaitedFor { .. } => {
            Some(format!("cancel or remove the dependent jobs first; `queuectl graph {id}` shows them"))
        }
        Conflict::Cycle { through } => Some(format!(
            "wait until job `{through}` has finished, or cancel it; `queuectl graph {id}` shows the dependencies"
        )),
        Conflict::DependencyFailed { dependency, .. } => {
            Some(format!("`queuectl retry --with-dependents {dependency}` retries both"))
        }
        Conflict::State(StateName::Processing) => {
            Some(format!("it is running; cancel it first: `queuectl cancel {id}`"))
        }
        Conflict::State(StateName::Pending) => {
            Some(format!("it is already waiting to run; {}", how_to_explain(id)))
        }
        Conflict::State(StateName::Completed | StateName::Dead | StateName::Cancelled) => Some(format!(
            "it has finished; `queuectl retry {id}` runs it again, `queuectl retry {id} --edit` with changes"
        )),
        Conflict::State(StateName::Failed)
        | Conflict::NotRunning(
            StateName::Processing | StateName::Completed | StateName::Dead | StateName::Cancelled,
        )
        | Conflict::Cancelling
        | Conflict::KeyTaken { .. }
        | Conflict::TooLate => None,
        Conflict::NotRunning(StateName::Pending | StateName::Failed) => Some(
            "only running jobs can be paused; `queuectl queue pause QUEUE` keeps waiting jobs from starting"
                .to_owned(),
        ),
        Conflict::WorkerStopping => Some(
            "it runs to its end before the worker exits; `queuectl worker list` shows the worker".to_owned(),
        ),
    }
}

/// For a queue that cannot be removed because of its jobs.
fn how_to_empty(queue: &QueueName) -> String {
    format!(
        "`queuectl list --queue {queue}` shows them; `queuectl remove --queue {queue}` deletes those that are not running"
    )
}

/// For a job that does not exist.
pub(super) const HOW_TO_LIST_JOBS: &str = "`queuectl list` shows all jobs";

fn how_to_list(what: Named) -> &'static str {
    match what {
        Named::Batch => "`queuectl batch list` shows the batches",
        Named::Schedule => "`queuectl schedule list` shows the schedules",
        Named::Hook => "`queuectl hook list` shows the hooks",
        Named::Queue => "`queuectl queue list` shows the queues",
        Named::Cause => "`queuectl dlq list --group` shows the causes",
    }
}

fn hint_for_schedule(error: &ScheduleError) -> Option<String> {
    if let ScheduleError::UnknownZone { nearest, .. } = error {
        let zones = "time zones have names like Europe/Berlin, America/New_York and UTC";
        return Some(did_you_mean(nearest.as_deref(), zones));
    }
    None
}

fn hint_for_hook(error: &HookError) -> Option<String> {
    if let HookError::UnknownEvent { nearest, .. } = error {
        return Some(events(nearest.as_deref()));
    }
    (*error == HookError::NoThreshold).then(|| "set it with --above N".to_owned())
}

pub(super) fn hint_for_each(error: &EachError) -> Option<String> {
    if let EachError::Template(TemplateError::SameKey { key }) = error {
        return Some(format!("give each item its own key, as in --unique-key '{key}-{{}}'"));
    }
    None
}

pub(super) fn did_you_mean(nearest: Option<&str>, otherwise: &str) -> String {
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

/// For a line that ends within an object.
const HOW_TO_WRITE_LINES: &str = "write each job on one line; an object over several lines must come first, and then \
                                  all of the input is read as one document, or it must be in an array";

/// For output that was deleted, most likely on account of its age.
const HOW_LONG_OUTPUT_IS_KEPT: &str =
    "output is deleted after some time: `queuectl config get retain_logs` shows after how long";

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
            format!("either all or none were stored: `queuectl show {witness}` shows which")
        }
        // There may be too many ids to list them here.
        (_, None) => "repeat the command with the same ids and --if-absent; --json prints the ids".to_owned(),
    }
}

/// As [`retry_hint`], for `count` lines that one commit was to store.
fn retry_hint_for_lines(line: u64, count: usize, witness: &JobId) -> String {
    if count == 1 {
        return format!("`queuectl show {witness}` shows whether the job of line {line} was stored");
    }
    let jobs = jobs(count as u64);
    format!(
        "of the {jobs} from line {line} on, either all or none were stored: `queuectl show {witness}` shows which"
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
    write_json_line(&mut io::stderr().lock(), &value)
}

fn report_text(failure: &Failure, color: ColorChoice) -> io::Result<()> {
    let mut out = notes(color);
    let (red, dim) = (anstyle::AnsiColor::Red.on_default().bold(), anstyle::Style::new().dimmed());
    let after = |label: &str, text: &str| {
        wrap_after_label(&printable(&truncate(text)), label.len(), width_of_notes())
    };
    writeln!(out, "{red}error:{red:#} {}", after("error: ", &failure.message))?;
    if let Some(hint) = &failure.hint {
        writeln!(out, "{dim}hint: {}{dim:#}", after("hint: ", hint))?;
    }
    Ok(())
}
