//! Removing a job.

use crate::sqlite::jobs::{dependencies, ready, unique_keys};
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::events;
use crate::{Change, Conflict, StoreError};
use domain::job::life::{StateName, WaitIndex};
use domain::values::name::JobId;

/// `None` if more links to finished dependents must be deleted than fit into one transaction.
pub(crate) fn remove(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Option<Change>, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => remove_job(tx, &job, by),
        None => Ok(Some(Change::NotFound)),
    }
}

/// As `remove`.
pub(crate) fn remove_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Option<Change>, StoreError> {
    let state = job.life.state.name();
    if state == StateName::Processing {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    }
    let count = dependencies::count_waiting(tx, job.seq, Conflict::MAX_COUNTED)?;
    if count > 0 {
        return Ok(Some(Change::Conflict(Conflict::WaitedFor { count })));
    }
    if !delete(tx, job)? {
        return Ok(None);
    }
    events::record(tx, None, "remove", by, Some(job.id.as_str()))?;
    Ok(Some(Change::Done(state)))
}

/// Deletes a job that is not running and that no other job waits for. `false` if the job still exists, because it has
/// more links than one transaction should delete; the next call continues.
pub(crate) fn delete(tx: &Tx<'_>, job: &JobRow) -> Result<bool, StoreError> {
    if !dependencies::delete_links(tx, job.seq)? {
        return Ok(false);
    }
    if job.life.wait_index(tx.now) != WaitIndex::None {
        ready::remove(tx, job)?;
    }
    unique_keys::delete(tx, job)?;
    delete_rows(tx, job.seq)?;
    let state = job.life.state.name();
    tx.counters.borrow_mut().leave(job.queue_id, state);
    if let Some(batch_id) = job.batch_id {
        tx.counters.borrow_mut().leave_batch(batch_id, state);
    }
    Ok(true)
}

fn delete_rows(tx: &Tx<'_>, seq: i64) -> Result<(), StoreError> {
    let tags: Option<String> =
        tx.prepare("select tags from jobs where seq = ?1")?.query_row([seq], |row| row.get(0))?;
    for tag in row::strings(tags.as_deref())? {
        tx.prepare("delete from job_tags where tag = ?1 and seq = ?2")?
            .execute(rusqlite::params![tag, seq])?;
    }
    tx.prepare("update sequence set next_seq = max(next_seq, ?1 + 1)")?.execute([seq])?;
    for statement in [
        // Workers that served only this job appear in no other history.
        "delete from workers
         where seq in (select worker_seq from attempts where seq = ?1) and state = 'stopped'
               and substr(queues, 1, 1) = '{'",
        "delete from outputs where seq = ?1",
        "delete from attempts where seq = ?1",
        "delete from events where seq = ?1",
        "delete from jobs where seq = ?1",
    ] {
        tx.prepare(statement)?.execute([seq])?;
    }
    Ok(())
}
