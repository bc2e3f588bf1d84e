//! The hints of failures: what to do next.

use std::io;
use std::path::Path;

use super::Named;
use crate::home::location::StoreAddress;
use crate::home::ownership::word;
use crate::jobs::enqueue::each::EachError;
use domain::hook::{HookError, HookEvent};
use domain::job::handle::JobHandle;
use domain::job::life::StateName;
use domain::job::template::TemplateError;
use domain::schedule::ScheduleError;
use domain::settings::SettingKey;
use domain::text::shell::quote_words;
use domain::values::name::{BatchName, HookName, JobId, QueueName, ScheduleName};
use store::postgres::identifier::quoted;
use store::{Conflict, Relocation};

pub(crate) const HOW_TO_REPLACE_HOOKS: &str =
    "choose another name, or remove it first with `queuectl hook remove`";

/// For the directory of a job that does not exist.
pub(crate) const CREATE_FOLDER: &str =
    "create it first; a job that depends on others may name a directory that they create";

/// For a schema on a server without a queue.
pub(crate) const CREATE_ON_SERVER: &str =
    "check the database and the schema in the address; `queuectl store migrate` creates a queue there";

/// For a copy to a store that is in use.
pub(crate) const EMPTY_STORE: &str =
    "name a store without a queue, such as another schema: `postgres://…?schema=NAME`";

/// For a copy that was interrupted.
pub(crate) fn how_to_clear(to: &StoreAddress) -> String {
    let delete = match to {
        StoreAddress::Sqlite(path) => format!("`rm {}*`", word(path)),
        StoreAddress::Postgres(address) => {
            format!("the SQL `drop schema {} cascade`", quoted(&address.schema))
        }
    };
    format!("the old store is complete and in use; delete the copy with {delete}, then copy again")
}

/// For a file that cannot be created at this path.
pub(crate) fn how_to_make(path: &Path, source: &io::Error) -> Option<String> {
    match (source.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) if !folder.exists() => {
            Some(format!("create its directory first: `mkdir -p {}`", word(folder)))
        }
        (io::ErrorKind::IsADirectory, _) => Some("name a file in it".to_owned()),
        _ => None,
    }
}

/// For a settings file with a password that others can read.
pub(crate) fn how_to_hide(path: &Path) -> String {
    format!("run `chmod 600 {}`, or move the password to ~/.pgpass", word(path))
}

/// For a queue on a server, which has no file to copy.
pub(crate) fn how_to_copy(schema: &str) -> String {
    let schema = quote_words(&[quoted(schema)]);
    format!("use `pg_dump -n {schema}` and `pg_restore`, or `queuectl export` and `queuectl import`")
}

/// For a store that is not in use, because its queue moves or has moved.
pub fn how_to_follow(relocation: &Relocation) -> String {
    match relocation {
        Relocation::MovedTo(_) => {
            "name that store with --store, in QUEUECTL_STORE, or as `store` in config.toml".to_owned()
        }
        Relocation::CopyOf(_) => "run the same `queuectl store copy` again".to_owned(),
    }
}

pub(crate) fn progress_of(batch: &BatchName) -> String {
    format!("`queuectl batch show {batch}` shows its progress")
}

/// For a job that has not finished yet.
pub(crate) fn how_to_watch((job, state): &(JobHandle, StateName)) -> String {
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

pub(crate) fn how_to_explain(job: &str) -> String {
    format!("`queuectl explain {job}` shows what it waits for")
}

pub(crate) fn hint_for_conflict(id: &str, conflict: &Conflict) -> Option<String> {
    match conflict {
        Conflict::WaitedFor { .. } => {
            Some(format!("cancel or remove the dependent jobs first; `queuectl graph {id}` shows them"))
        }
        Conflict::Cycle { through } => Some(format!(
            "wait until job `{through}` has finished, or cancel it; `queuectl graph {id}` shows the dependencies"
        )),
        Conflict::DependencyFailed { dependency, .. } => {
            Some(format!("`queuectl retry --with-dependents {dependency}` retries it and its dependents"))
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
        | Conflict::TooLate
        | Conflict::Contradiction => None,
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
pub(crate) fn how_to_empty(queue: &QueueName) -> String {
    format!(
        "`queuectl list --queue {queue}` shows them; `queuectl remove --queue {queue}` deletes those that are not running"
    )
}

/// For a job that does not exist.
pub const HOW_TO_LIST_JOBS: &str = "`queuectl list` shows all jobs";

pub(crate) fn how_to_list(what: Named) -> &'static str {
    match what {
        Named::Batch => "`queuectl batch list` shows the batches",
        Named::Schedule => "`queuectl schedule list` shows the schedules",
        Named::Hook => "`queuectl hook list` shows the hooks",
        Named::Queue => "`queuectl queue list` shows the queues",
        Named::Cause => "`queuectl dlq list --group` shows the causes",
    }
}

pub(crate) fn hint_for_schedule(error: &ScheduleError) -> Option<String> {
    if let ScheduleError::UnknownZone { nearest, .. } = error {
        let zones = "time zones have names like Europe/Berlin, America/New_York and UTC";
        return Some(did_you_mean(nearest.as_deref(), zones));
    }
    None
}

pub(crate) fn hint_for_hook(error: &HookError) -> Option<String> {
    if let HookError::UnknownEvent { nearest, .. } = error {
        return Some(events(nearest.as_deref()));
    }
    (*error == HookError::NoThreshold).then(|| "set it with --above N".to_owned())
}

pub fn hint_for_each(error: &EachError) -> Option<String> {
    if let EachError::Template(TemplateError::SameKey { key }) = error {
        return Some(format!("give each item its own key, as in --unique-key '{key}-{{}}'"));
    }
    None
}

pub fn did_you_mean(nearest: Option<&str>, otherwise: &str) -> String {
    nearest.map_or_else(|| otherwise.to_owned(), |nearest| format!("did you mean `{nearest}`?"))
}

pub(crate) fn settings(nearest: Option<&str>) -> String {
    did_you_mean(nearest, &format!("the settings are {}", SettingKey::ALL.map(SettingKey::name).join(", ")))
}

pub(crate) fn events(nearest: Option<&str>) -> String {
    did_you_mean(
        nearest,
        &format!("the events are {}", HookEvent::ALL.map(HookEvent::name_in_flags).join(", ")),
    )
}

/// For a line that ends within an object.
pub(crate) const HOW_TO_WRITE_LINES: &str = "write each job on one line; an object over several lines must come first, and then \
                                  all of the input is read as one document, or it must be in an array";

/// For output that was deleted, most likely on account of its age.
pub(crate) const HOW_LONG_OUTPUT_IS_KEPT: &str =
    "output is deleted after some time: `queuectl config get retain_logs` shows after how long";

/// For a job that would wait for itself.
pub(crate) const SELF_WAIT_HINT: &str = "jobs that depend on this one start only after it ends: wait outside this job, or move \
                              the rest into a job that depends on them";

/// For a job that would wait for a job in the queue whose only slot it occupies itself.
pub(crate) fn capacity_hint(queue: &QueueName) -> String {
    format!(
        "use another queue, raise its limit (`queuectl queue set {queue} --concurrency 2`), or enqueue the job without \
         waiting for it"
    )
}

/// How to find out whether the jobs were stored, and to store them if not.
pub(crate) fn retry_hint(ids: &[JobId], witness: Option<&JobId>) -> String {
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
pub(crate) fn retry_hint_for_lines(line: u64, count: usize, witness: &JobId) -> String {
    if count == 1 {
        return format!("`queuectl show {witness}` shows whether the job of line {line} was stored");
    }
    format!(
        "of the {count} jobs from line {line} on, either all or none were stored: `queuectl show {witness}` shows which"
    )
}

/// The attempts that exist.
pub(crate) fn attempts(known: &[u32]) -> String {
    match known {
        [] => "it has not run yet".to_owned(),
        [only] => format!("it has only attempt {only}"),
        [first, .., last] => format!("it has attempts {first} to {last}"),
    }
}

pub(super) fn how_to_list_deliveries(hook: &HookName) -> String {
    format!("`queuectl hook deliveries {hook}` lists those that wait, and the last tries")
}

pub(super) fn how_to_edit_schedule(name: &ScheduleName) -> String {
    format!("`queuectl schedule edit {name}` changes it")
}

pub(super) fn how_to_remove_schedule(name: &ScheduleName) -> String {
    format!("remove the schedule first: `queuectl schedule remove {name}`")
}
