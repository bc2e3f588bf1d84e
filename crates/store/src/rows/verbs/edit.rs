//! Editing jobs that are not running.

use super::retry;
use crate::rows::jobs::causes;
use crate::rows::jobs::ready;
use crate::rows::jobs::row;
use crate::rows::jobs::row::{JobRow, to_json};
use crate::rows::keys::JobSeq;
use crate::rows::named;
use crate::rows::tables::{events, queues};
use crate::rows::tx::Tx;
use crate::rows::views::find::find;
use crate::{Change, Conflict, JobRef, Result};
use domain::job::Job;
use domain::job::edit::{Edit, EditError};
use domain::job::life::{Life, StateName, WaitIndex};
use domain::values::name::JobId;

/// Edits the first of these, as many as this transaction's portion allows.
pub(crate) fn edit_portion(tx: &mut Tx<'_>, jobs: &[JobRef], change: &Edit, by: &str) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for job in jobs {
        if tx.is_spent() {
            break;
        }
        tx.spend_job();
        changes.push(edit_selected(tx, job, change, by)?);
    }
    Ok(changes)
}

fn edit_selected(tx: &mut Tx<'_>, selected: &JobRef, change: &Edit, by: &str) -> Result<Change> {
    // A removed job's id may be in use again.
    let Some(job) = find(tx, &selected.id)?.filter(|job| job.number == selected.number) else {
        return Ok(Change::NotFound);
    };
    let state = job.life.state.name();
    if state != selected.state {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    match change.apply(&job) {
        Err(EditError::Spec(_)) => Ok(Change::Conflict(Conflict::Contradiction)),
        Ok(_) | Err(EditError::Fixed { .. } | EditError::Nothing | EditError::Malformed(_)) => {
            edit(tx, &selected.id, change, by)
        }
    }
}

pub(crate) fn edit(tx: &mut Tx<'_>, id: &JobId, edit: &Edit, by: &str) -> Result<Change> {
    let (Some(job), Some(before)) = (row::by_id(tx, id)?, find(tx, id)?) else {
        return Ok(Change::NotFound);
    };
    let state = job.life.state.name();
    let life = match edit.life(&job.life, tx.now) {
        Ok(Some(life)) => life,
        Ok(None) => return Ok(Change::Conflict(Conflict::TooLate)),
        Err(_) => return Ok(Change::Conflict(Conflict::State(state))),
    };
    let edited = edit.apply(&before).map_err(|error| row::malformed("job", error))?;
    let after =
        JobRow { queue_id: queues::id(tx, &edited.queue)?, priority: edited.priority, life, ..job.clone() };
    if !update(tx, &job, &after, &edited)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    if before.tags != edited.tags {
        replace_tags(tx, job.seq, &before.tags, &edited.tags)?;
    }
    update_place(tx, &job, &after)?;
    events::record(tx, Some(job.seq), "edit", by, Some(&edit.fields().join(", ")))?;
    Ok(Change::Done(state))
}

/// Edits a job and retries it, or does neither. It retries first; after that only a due time out of range could still
/// refuse the edit. `None`: see [`retry::retry`].
pub(crate) fn edit_and_retry(tx: &mut Tx<'_>, id: &JobId, change: &Edit, by: &str) -> Result<Option<Change>> {
    let Some(job) = row::by_id(tx, id)? else {
        return Ok(Some(Change::NotFound));
    };
    if change.is_too_late(tx.now) {
        return Ok(Some(Change::Conflict(Conflict::TooLate)));
    }
    match retry::retry(tx, &job, by)? {
        Some(Change::Done(_)) => edit(tx, id, change, by).map(Some),
        other @ (None | Some(Change::NotFound | Change::Conflict(_))) => Ok(other),
    }
}

/// The fence of every change: the row must still have the attempt and the state on which the decision was based.
fn update(tx: &Tx<'_>, before: &JobRow, after: &JobRow, edited: &Job) -> Result<bool> {
    let Life { run_at, due_at, max_retries, .. } = &after.life;
    let changed = tx.execute(
        "update jobs
         set queue_id = :queue_id, priority = :priority, run_at = :run_at, due_at = :due_at,
             max_retries = :max_retries, command = :command, cwd = :cwd, timeout_ms = :timeout, tags = :tags,
             options = :options, updated_at = :now
         where seq = :seq and attempts = :attempts and state = :state",
        named! {
            seq: before.seq,
            attempts: before.life.attempts,
            state: before.life.state.name(),
            queue_id: after.queue_id,
            priority: after.priority,
            run_at,
            due_at,
            max_retries,
            command: edited.command,
            cwd: edited.cwd,
            timeout: edited.timeout,
            tags: to_json(&edited.tags),
            options: edited.options.to_json(),
            now: tx.now,
        },
    )?;
    Ok(changed == 1)
}

fn replace_tags(tx: &Tx<'_>, seq: JobSeq, before: &[String], after: &[String]) -> Result<()> {
    for tag in before {
        tx.execute("delete from job_tags where tag = :tag and seq = :seq", named! { tag, seq })?;
    }
    for tag in after {
        tx.execute(
            "insert into job_tags (tag, seq) values (:tag, :seq) on conflict (tag, seq) do nothing",
            named! { tag, seq },
        )?;
    }
    Ok(())
}

/// Moves the job to its new place in `ready` or `waiting`, and counts it in its queue.
fn update_place(tx: &mut Tx<'_>, before: &JobRow, after: &JobRow) -> Result<()> {
    if before.queue_id != after.queue_id {
        tx.counters.leave(before.queue_id, before.batch_id, before.life.state.name());
        tx.counters.enter(after.queue_id, after.batch_id, after.life.state.name());
        if after.life.state.name() == StateName::Dead {
            causes::leave(tx, before)?;
            causes::enter(tx, after.seq, after.queue_id, &after.life, &after.latest)?;
        }
    }
    if before.life.wait_index(tx.now) != WaitIndex::None {
        ready::remove(tx, before)?;
    }
    ready::insert(tx, after, after.life.due_at, after.life.wait_index(tx.now))
}
