//! What each failure means: its exit code, and a hint where one helps.

use super::Exit;
use super::hints::{
    CREATE_FOLDER, CREATE_ON_SERVER, EMPTY_STORE, HOW_LONG_OUTPUT_IS_KEPT, HOW_TO_LIST_JOBS,
    HOW_TO_REPLACE_HOOKS, HOW_TO_WRITE_LINES, SELF_WAIT_HINT, attempts, capacity_hint, did_you_mean,
    hint_for_conflict, hint_for_each, hint_for_hook, hint_for_schedule, how_to_clear, how_to_copy,
    how_to_empty, how_to_follow, how_to_hide, how_to_list, how_to_make, how_to_watch, progress_of,
    retry_hint, retry_hint_for_lines, settings,
};
use domain::settings::SettingError;
use ops::OpError;
use ops::config::how_to_repair;
use ops::error::Named;
use ops::home::ownership::{advice, advice_for_found, advice_for_making, advice_for_owner, how_to_create};
use store::sqlite::RestoreError;
use store::transfer::ImportError;
use store::{EnqueueRefusal, MoveError, StoreError};
use sys::process::Holder;

/// An exit code, and a hint where one helps.
pub(crate) type Judgement = (Exit, Option<String>);

fn with_hint(exit: Exit, hint: impl Into<String>) -> Judgement {
    (exit, Some(hint.into()))
}

pub(crate) fn judge(error: &OpError) -> Judgement {
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
        OpError::CannotMake { path, source } => (Exit::Unavailable, how_to_make(path, source)),
        OpError::CannotReadLog { .. } => (Exit::Unavailable, None),
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
        OpError::UnusableFolder { .. } => with_hint(Exit::Usage, CREATE_FOLDER),
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
pub(crate) fn exit_of_diagnosis(refusal: Option<&OpError>) -> Exit {
    let exit = refusal.map(|error| judge(error).0);
    exit.filter(|exit| matches!(exit, Exit::Unavailable | Exit::Corrupt)).unwrap_or(Exit::Failed)
}

fn judge_store(error: &StoreError) -> Judgement {
    let doctor = "`queuectl doctor` shows more";
    match error {
        StoreError::NotOwn(refused) => with_hint(Exit::Unavailable, advice(refused)),
        StoreError::Unreachable(error) if error.is_incompatible() => with_hint(Exit::Corrupt, error.hint()),
        StoreError::Unreachable(error) => with_hint(Exit::Unavailable, error.hint()),
        StoreError::Obstacle { advice, .. } | StoreError::NotAllowed { advice, .. } => {
            with_hint(Exit::Unavailable, *advice)
        }
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
