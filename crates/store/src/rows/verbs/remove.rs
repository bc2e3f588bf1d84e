//! Removing a job.

use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::jobs::{causes, dependencies, ready, unique_keys};
use crate::rows::keys::JobSeq;
use crate::rows::tables::events;
use crate::rows::tx::Tx;
use crate::rows::{Dialect, named, params};
use crate::{Change, Conflict, Result};
use domain::job::life::{StateName, WaitIndex};

/// `None` if more links to finished dependents must be deleted than fit into one transaction.
pub(crate) fn remove(tx: &mut Tx<'_>, job: &JobRow, by: &str) -> Result<Option<Change>> {
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
pub(crate) fn delete(tx: &mut Tx<'_>, job: &JobRow) -> Result<bool> {
    if !dependencies::delete_links(tx, job.seq)? {
        return Ok(false);
    }
    if job.life.wait_index(tx.now) != WaitIndex::None {
        ready::remove(tx, job)?;
    }
    unique_keys::delete(tx, job)?;
    let state = job.life.state.name();
    if state == StateName::Dead {
        causes::leave(tx, job)?;
    }
    delete_rows(tx, job.seq)?;
    tx.counters.leave(job.queue_id, job.batch_id, state);
    Ok(true)
}

/// The number of a removed job is not given again. PostgreSQL gives none twice.
fn keep_number(tx: &Tx<'_>, seq: JobSeq) -> Result<()> {
    match tx.dialect() {
        Dialect::Sqlite => {
            let next = seq.next();
            tx.execute("update sequence set next_seq = :next where next_seq < :next", named! { next })
                .map(drop)
        }
        Dialect::Postgres => Ok(()),
    }
}

/// The tags of a job, as JSON.
pub(crate) const TAGS: &str = "select tags from jobs where seq = ?1";
pub(crate) const DELETE_TAG: &str = "delete from job_tags where tag = ?1 and seq = ?2";
/// Workers that served only this job appear in no other history.
pub(crate) const DELETE_WORKERS: &str = "delete from workers
     where seq in (select worker_seq from attempts where seq = ?1) and state = 'stopped'
           and substr(queues, 1, 1) = '{' and substr(queues, 3, 3) = 'job'";
pub(crate) const DELETE_OUTPUTS: &str = "delete from outputs where seq = ?1";
pub(crate) const DELETE_OUTPUT_PARTS: &str = "delete from output_parts where seq = ?1";
pub(crate) const DELETE_ATTEMPTS: &str = "delete from attempts where seq = ?1";
pub(crate) const DELETE_EVENTS: &str = "delete from events where seq = ?1";
pub(crate) const DELETE_JOB: &str = "delete from jobs where seq = ?1";

fn delete_rows(tx: &Tx<'_>, seq: JobSeq) -> Result<()> {
    let tags: Option<String> = tx.one(TAGS, params![seq], |row| row.get(0))?;
    for tag in row::strings(tags.as_deref())? {
        tx.execute(DELETE_TAG, params![tag, seq])?;
    }
    keep_number(tx, seq)?;
    // The workers first: they are found by the attempts.
    for statement in
        [DELETE_WORKERS, DELETE_OUTPUTS, DELETE_OUTPUT_PARTS, DELETE_ATTEMPTS, DELETE_EVENTS, DELETE_JOB]
    {
        tx.execute(statement, params![seq])?;
    }
    Ok(())
}
