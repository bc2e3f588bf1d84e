//! What each error means to a caller: its kind, and a hint where one helps.

use super::hints::{
    CREATE_FOLDER, CREATE_ON_SERVER, EMPTY_STORE, HOW_LONG_OUTPUT_IS_KEPT, HOW_TO_LIST_JOBS,
    HOW_TO_REPLACE_HOOKS, HOW_TO_WRITE_LINES, SELF_WAIT_HINT, attempts, capacity_hint, did_you_mean,
    hint_for_conflict, hint_for_each, hint_for_hook, hint_for_schedule, how_to_clear, how_to_copy,
    how_to_edit_schedule, how_to_empty, how_to_follow, how_to_hide, how_to_list, how_to_list_deliveries,
    how_to_make, how_to_remove_schedule, how_to_watch, progress_of, retry_hint, retry_hint_for_lines,
    settings,
};
use crate::OpError;
use crate::config::how_to_repair;
use crate::error::{Kind, Named};
use crate::home::ownership::{advice, advice_for_found, advice_for_making, advice_for_owner, how_to_create};
use domain::settings::SettingError;
use store::sqlite::RestoreError;
use store::transfer::ImportError;
use store::{EnqueueRefusal, MoveError, StoreError};
use sys::process::Holder;

/// A kind, and a hint where one helps.
pub type Judgement = (Kind, Option<String>);

fn with_hint(kind: Kind, hint: impl Into<String>) -> Judgement {
    (kind, Some(hint.into()))
}

pub fn judge(error: &OpError) -> Judgement {
    match error {
        OpError::Store(error) | OpError::Move(MoveError::Store(error)) => judge_store(error),
        OpError::Restore(error) => judge_restore(error),
        OpError::Import(error) => judge_import(error),
        OpError::Move(MoveError::Workers(_)) => with_hint(Kind::Conflict, "--wait stops them first"),
        OpError::NotEmpty { .. } => with_hint(Kind::Conflict, EMPTY_STORE),
        OpError::UnfinishedCopy { to } => with_hint(Kind::Conflict, how_to_clear(to)),
        OpError::BadLine { source, .. } => judge_line(source),
        OpError::Stopped { line, stored, source } => judge_stop(*line, *stored, source),
        OpError::PartlyDone { source, .. } => judge_part(source),
        OpError::Unacknowledged { ids, witness, .. } => {
            with_hint(Kind::Unknown, retry_hint(ids, witness.as_ref()))
        }
        OpError::TimedOut { unfinished, .. } => (Kind::TimedOut, unfinished.first().map(how_to_watch)),
        OpError::BatchTimedOut { name, .. } => with_hint(Kind::TimedOut, progress_of(name)),
        OpError::UnsuccessfulBatch { name, .. } => with_hint(
            Kind::Failed,
            format!("`queuectl list --batch {name} --state dead,cancelled` shows them"),
        ),
        OpError::HookFailed { .. } => (Kind::HookFailed, None),
        OpError::Unsuccessful { .. } | OpError::LogsNotImported { .. } | OpError::CannotWrite { .. } => {
            (Kind::Failed, None)
        }
        OpError::ExposedHome { home, source } => with_hint(Kind::Unavailable, advice_for_found(home, source)),
        OpError::ForeignHome { home, owner } => with_hint(Kind::Unavailable, advice_for_owner(home, *owner)),
        OpError::ForeignFolder { home, source } => {
            with_hint(Kind::Unavailable, advice_for_making(home, source))
        }
        OpError::CannotMake { path, source } => (Kind::Unavailable, how_to_make(path, source)),
        OpError::CannotReadLog { .. } => (Kind::Unavailable, None),
        OpError::DamagedOutput { .. } | OpError::DamagedLog { .. } => (Kind::Corrupt, None),
        OpError::NoQueueOnServer { .. } => with_hint(Kind::NotFound, CREATE_ON_SERVER),
        OpError::NoQueue { missing, home } => with_hint(Kind::NotFound, how_to_create(missing, home)),
        OpError::NoSuchJob(_) | OpError::Refused(EnqueueRefusal::UnknownDependency(_)) => {
            with_hint(Kind::NotFound, HOW_TO_LIST_JOBS)
        }
        OpError::NoSuch { what, nearest, .. } => {
            with_hint(Kind::NotFound, did_you_mean(nearest.as_deref(), how_to_list(*what)))
        }
        OpError::NoSuchDelivery { hook, .. } => with_hint(Kind::NotFound, how_to_list_deliveries(hook)),
        OpError::DeliveryInFlight(_) => (Kind::Conflict, None),
        OpError::NoSuchAttempt { known, .. } => with_hint(Kind::NotFound, attempts(known)),
        OpError::Removed(_) => (Kind::NotFound, None),
        OpError::OutputElsewhere { .. } => (Kind::Gone, None),
        OpError::IncompleteLine(_) => with_hint(Kind::Malformed, HOW_TO_WRITE_LINES),
        OpError::OutputMissing { .. } => with_hint(Kind::Gone, HOW_LONG_OUTPUT_IS_KEPT),
        OpError::Refused(EnqueueRefusal::IdTaken(_)) => {
            with_hint(Kind::Conflict, "--if-absent returns the existing job instead")
        }
        OpError::Conflict { job, conflict, .. } => {
            (Kind::Conflict, hint_for_conflict(&job.short(), conflict))
        }
        OpError::NotDead { job, .. } => {
            with_hint(Kind::Conflict, format!("`queuectl show {}` shows it", job.short()))
        }
        OpError::ScheduleTaken(name) => with_hint(Kind::Conflict, how_to_edit_schedule(name)),
        OpError::ScheduleChanged(name) => with_hint(
            Kind::Conflict,
            format!("nothing was changed; `queuectl schedule show {name}` shows it"),
        ),
        OpError::HookTaken(_) => with_hint(Kind::Conflict, HOW_TO_REPLACE_HOOKS),
        OpError::QueueInUse { queue, .. } => with_hint(Kind::Conflict, how_to_empty(queue)),
        OpError::ScheduledQueue { schedule, .. } => {
            with_hint(Kind::Conflict, how_to_remove_schedule(schedule))
        }
        OpError::UnusableFolder { .. } => with_hint(Kind::Usage, CREATE_FOLDER),
        OpError::DefaultQueue => with_hint(Kind::Usage, "jobs go there unless they name another queue"),
        OpError::FileExists(_) => with_hint(Kind::Conflict, "use --force to replace it"),
        OpError::WaitsForItself { .. } => with_hint(Kind::Conflict, SELF_WAIT_HINT),
        OpError::OnlySlotTaken { queue, .. } => with_hint(Kind::Conflict, capacity_hint(queue)),
        OpError::Schedule(error) => (Kind::Usage, hint_for_schedule(error)),
        OpError::Hook(error) => (Kind::Usage, hint_for_hook(error)),
        OpError::Each(error) => (Kind::Usage, hint_for_each(error)),
        OpError::Setting(SettingError::ForeignKey { instead, .. }) => with_hint(Kind::Usage, *instead),
        OpError::Setting(SettingError::UnknownKey { nearest, .. }) => {
            with_hint(Kind::Usage, settings(nearest.as_deref()))
        }
        OpError::AmbiguousCause { .. } => with_hint(Kind::Usage, how_to_list(Named::Cause)),
        OpError::NoHome => with_hint(Kind::Usage, "choose a directory with --home"),
        OpError::Json { is_job: false, .. } => (Kind::Malformed, None),
        OpError::Request(_)
        | OpError::Json { is_job: true, .. }
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
        | OpError::OnlyForOneJob(_)
        | OpError::BadConfigFile { .. }
        | OpError::EmptyStore
        | OpError::UnknownStore => (Kind::Usage, None),
        OpError::Address(error) => (Kind::Usage, error.hint()),
        OpError::ExposedPassword { path, .. } => with_hint(Kind::Usage, how_to_hide(path)),
        OpError::NotInFile { schema, .. } => with_hint(Kind::Usage, how_to_copy(schema)),
    }
}

/// For a change of many jobs that stopped in the middle.
fn judge_part(source: &StoreError) -> Judgement {
    let kind = judge_store(source).0;
    // `Unavailable` would promise that nothing was changed.
    let kind = if matches!(kind, Kind::Unknown | Kind::Corrupt) { kind } else { Kind::Failed };
    with_hint(kind, "run the same command again to change the rest")
}

fn judge_restore(error: &RestoreError) -> Judgement {
    match error {
        RestoreError::Store(error) => judge_store(error),
        RestoreError::BadBackup { source, .. } => (judge_store(source).0, None),
        RestoreError::Workers { .. } => with_hint(Kind::Conflict, "stop them first: `queuectl worker stop`"),
        RestoreError::UnderWay => (Kind::Conflict, None),
    }
}

fn judge_import(error: &ImportError) -> Judgement {
    match error {
        ImportError::Store(error) => (judge_store(error).0, None),
        ImportError::IdTaken(_) => with_hint(Kind::Conflict, "--if-absent skips jobs that already exist"),
        ImportError::NotEmpty { .. } => with_hint(Kind::Conflict, EMPTY_STORE),
        ImportError::KeyTaken { .. } => (Kind::Conflict, None),
        ImportError::Malformed { .. } => {
            with_hint(Kind::Usage, "nothing was imported; fix that line or export the queue again")
        }
        ImportError::NotJson { .. } | ImportError::Unreadable { .. } => (Kind::Usage, None),
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
    let kind = match of_line {
        Kind::Busy | Kind::Full | Kind::Unavailable | Kind::Unknown | Kind::Corrupt | Kind::TimedOut => {
            of_line
        }
        Kind::Failed
        | Kind::HookFailed
        | Kind::Usage
        | Kind::Malformed
        | Kind::NotFound
        | Kind::Gone
        | Kind::Conflict => {
            if stored == 0 {
                Kind::Usage
            } else {
                Kind::Failed
            }
        }
    };
    if stored == 0 && of_line != Kind::Unknown {
        return (kind, hint);
    }
    if let OpError::Unacknowledged { ids, witness: Some(witness), .. } = source {
        return with_hint(kind, retry_hint_for_lines(line, ids.len(), witness));
    }
    with_hint(
        kind,
        "the jobs stored so far are kept; to repeat the whole input safely, give every job an id and use --if-absent",
    )
}

fn judge_store(error: &StoreError) -> Judgement {
    let doctor = "`queuectl doctor` shows more";
    match error {
        StoreError::NotOwn(refused) => with_hint(Kind::Unavailable, advice(refused)),
        StoreError::Unreachable(error) if error.is_incompatible() => with_hint(Kind::Corrupt, error.hint()),
        StoreError::Unreachable(error) => with_hint(Kind::Unavailable, error.hint()),
        StoreError::Obstacle { advice, .. } | StoreError::NotAllowed { advice, .. } => {
            with_hint(Kind::Unavailable, *advice)
        }
        StoreError::Full => {
            with_hint(Kind::Full, "free some space on the disk of the home directory, then try again")
        }
        StoreError::Busy { holder: Some(Holder { pid, is_stopped: true, .. }), .. } => {
            with_hint(Kind::Busy, format!("`kill -CONT {pid}` resumes it, `kill -KILL {pid}` ends it"))
        }
        StoreError::Busy { .. } => {
            with_hint(Kind::Busy, "`queuectl doctor` shows which process holds the lock")
        }
        StoreError::ReadOnly => with_hint(
            Kind::Unavailable,
            "its filesystem may be mounted read-only; `queuectl doctor` shows more",
        ),
        StoreError::CannotOpen { .. } | StoreError::Unavailable { .. } | StoreError::Changing => {
            with_hint(Kind::Unavailable, doctor)
        }
        StoreError::OutcomeUnknown { .. } => with_hint(Kind::Unknown, "repeat the command with the same id"),
        StoreError::NotPrimary => {
            with_hint(Kind::Unavailable, "name the primary in the address of the store, or try again later")
        }
        StoreError::Relocated(relocation) => with_hint(Kind::Unavailable, how_to_follow(relocation)),
        StoreError::TooOld { .. } => {
            with_hint(Kind::Corrupt, "bring it up to date: `queuectl store migrate`")
        }
        StoreError::TooNew { .. } => {
            with_hint(Kind::Corrupt, "use the queuectl version that last opened this store, or a newer one")
        }
        StoreError::BadSetting { key, .. } => with_hint(Kind::Corrupt, how_to_repair(key)),
        StoreError::Corrupt { .. } | StoreError::NotAStore { .. } | StoreError::Malformed { .. } => {
            with_hint(Kind::Corrupt, doctor)
        }
        StoreError::NoSuchJob(_) => with_hint(Kind::NotFound, HOW_TO_LIST_JOBS),
        StoreError::NoSuchWorker(_) => (Kind::NotFound, None),
    }
}
