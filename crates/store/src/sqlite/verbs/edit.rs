//! Editing a job that is not running.

use rusqlite::params;

use super::{enqueue, retry};
use crate::options::JobOptions;
use crate::sqlite::jobs::ready;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{JobRow, to_json};
use crate::sqlite::session::tx::{Tx, from_millis, millis};
use crate::sqlite::tables::{events, queues};
use crate::{Change, Conflict, StoreError};
use domain::job::edit::Edit;
use domain::job::life::{Life, WaitIndex};
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;

pub(crate) fn edit(tx: &Tx<'_>, id: &JobId, edit: &Edit, by: &str) -> Result<Change, StoreError> {
    let Some(job) = row::by_id(tx, id)? else {
        return Ok(Change::NotFound);
    };
    let state = job.life.state.name();
    let life = match edit.life(&job.life, tx.now) {
        Ok(Some(life)) => life,
        Ok(None) => return Ok(Change::Conflict(Conflict::TooLate)),
        Err(_) => return Ok(Change::Conflict(Conflict::State(state))),
    };
    let after = JobRow {
        queue_id: edit.queue.as_ref().map_or(Ok(job.queue_id), |queue| queues::id(tx, queue))?,
        priority: edit.priority.unwrap_or(job.priority),
        life,
        ..job.clone()
    };
    if !update(tx, &job, &after, edit)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    update_place(tx, &job, &after)?;
    events::record(tx, Some(job.seq), "edit", by, Some(&edit.fields().join(", ")))?;
    Ok(Change::Done(state))
}

/// Edits a job and retries it, or does neither. It retries first; after that only a due time out of range could still
/// refuse the edit. `None`: see [`retry::retry`].
pub(crate) fn edit_and_retry(
    tx: &Tx<'_>,
    id: &JobId,
    change: &Edit,
    by: &str,
) -> Result<Option<Change>, StoreError> {
    if change.is_too_late(tx.now) && enqueue::is_taken(tx, id)? {
        return Ok(Some(Change::Conflict(Conflict::TooLate)));
    }
    match retry::retry(tx, id, by)? {
        Some(Change::Done(_)) => edit(tx, id, change, by).map(Some),
        other @ (None | Some(Change::NotFound | Change::Conflict(_))) => Ok(other),
    }
}

/// The fence of every change: the row must still have the attempt and the state on which the decision was based.
fn update(tx: &Tx<'_>, before: &JobRow, after: &JobRow, edit: &Edit) -> Result<bool, StoreError> {
    let spec = SpecColumns::of(tx, before.seq)?;
    if let Some(tags) = &edit.tags {
        replace_tags(tx, before.seq, spec.tags.as_deref(), tags)?;
    }
    let options = JobOptions {
        env: edit.env(&before.options.env),
        backoff: edit.backoff.unwrap_or(before.options.backoff),
        on_dependency_failure: edit.on_dependency_failure.unwrap_or(before.options.on_dependency_failure),
        limits: edit.limits.unwrap_or(before.options.limits),
        // The caller has checked that the rules do not contradict each other.
        retry: edit.retry(&before.options.retry).unwrap_or(before.options.retry),
        ..before.options.clone()
    };
    let mut update = tx.prepare(
        "update jobs
         set queue_id = ?4, priority = ?5, run_at = ?6, due_at = ?7, max_retries = ?8, command = ?9, cwd = ?10,
             timeout_ms = ?11, tags = ?12, options = ?13, updated_at = ?14
         where seq = ?1 and attempts = ?2 and state = ?3",
    )?;
    let Life { run_at, due_at, max_retries, .. } = &after.life;
    let changed = update.execute(params![
        before.seq,
        before.life.attempts,
        before.life.state.name().name(),
        after.queue_id,
        after.priority,
        run_at.map(Timestamp::as_millis),
        due_at.as_millis(),
        max_retries,
        edit.command.as_ref().unwrap_or(&spec.command),
        edit.cwd.as_ref().or(spec.cwd.as_ref()),
        edit.timeout(spec.timeout_ms.map(from_millis)).map(millis),
        edit.tags.as_ref().map_or(spec.tags, |tags| to_json(tags)),
        options.to_json(),
        tx.now.as_millis(),
    ])?;
    Ok(changed == 1)
}

/// The columns that no state change reads.
struct SpecColumns {
    command: String,
    cwd: Option<String>,
    timeout_ms: Option<i64>,
    tags: Option<String>,
}

impl SpecColumns {
    fn of(tx: &Tx<'_>, seq: i64) -> Result<Self, StoreError> {
        let mut select = tx.prepare("select command, cwd, timeout_ms, tags from jobs where seq = ?1")?;
        let read = select.query_row([seq], |row| {
            Ok(Self { command: row.get(0)?, cwd: row.get(1)?, timeout_ms: row.get(2)?, tags: row.get(3)? })
        });
        Ok(read?)
    }
}

fn replace_tags(tx: &Tx<'_>, seq: i64, before: Option<&str>, after: &[String]) -> Result<(), StoreError> {
    for tag in row::strings(before)? {
        tx.prepare("delete from job_tags where tag = ?1 and seq = ?2")?.execute(params![tag, seq])?;
    }
    for tag in after {
        tx.prepare("insert or ignore into job_tags (tag, seq) values (?1, ?2)")?
            .execute(params![tag, seq])?;
    }
    Ok(())
}

/// Moves the job to its new place in `ready` or `waiting`, and counts it in its queue.
fn update_place(tx: &Tx<'_>, before: &JobRow, after: &JobRow) -> Result<(), StoreError> {
    if before.queue_id != after.queue_id {
        let mut counters = tx.counters.borrow_mut();
        counters.leave(before.queue_id, before.life.state.name());
        counters.enter(after.queue_id, after.life.state.name());
    }
    if before.life.wait_index(tx.now) != WaitIndex::None {
        ready::remove(tx, before)?;
    }
    ready::insert(tx, after, &after.life)
}
