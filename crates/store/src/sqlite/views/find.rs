//! Looking up a job.

use rusqlite::{OptionalExtension, params};

use crate::StoreError;
use crate::sqlite::jobs::history;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{read_job, select_whole_jobs};
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{events, runs};
use crate::sqlite::verbs::enqueue;
use domain::job::{Job, JobRecord};
use domain::values::name::JobId;

pub(crate) fn find(tx: &Tx<'_>, id: &JobId) -> Result<Option<Job>, StoreError> {
    let mut select = tx.prepare(select_whole_jobs!("where j.id = ?1"))?;
    select.query_row([id.as_str()], |row| Ok(read_job(tx, row))).optional()?.transpose()
}

pub(crate) fn record(tx: &Tx<'_>, id: &JobId) -> Result<Option<JobRecord>, StoreError> {
    let Some(job) = find(tx, id)? else {
        return Ok(None);
    };
    let Some(known) = row::by_id(tx, id)? else {
        return Ok(None);
    };
    let (schedule, scheduled_for) = runs::origin(tx, id)?;
    Ok(Some(JobRecord {
        job,
        schedule,
        scheduled_for,
        events: events::of_job(tx, known.seq)?,
        history: history::of_job(tx, &known)?,
    }))
}

pub(crate) fn output(tx: &Tx<'_>, id: &JobId, attempt: u32) -> Result<Option<Vec<u8>>, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => history::output(tx, job.seq, attempt),
        None => Ok(None),
    }
}

pub(crate) fn ids_with_prefix(tx: &Tx<'_>, prefix: &JobId, limit: usize) -> Result<Vec<JobId>, StoreError> {
    // By the unique index of ids. Every character of an id sorts before the tilde.
    let mut select =
        tx.prepare("select id from jobs where id >= ?1 and id < ?1 || '~' order by id limit ?2")?;
    let rows = select.query_map(params![prefix.as_str(), limit], |row| Ok(row::name(row, 0)))?;
    rows.map(|id| id?).collect()
}

pub(crate) fn existing_ids(tx: &Tx<'_>, ids: &[JobId]) -> Result<Vec<JobId>, StoreError> {
    let mut existing = Vec::new();
    for id in ids {
        if enqueue::is_taken(tx, id)? {
            existing.push(id.clone());
        }
    }
    Ok(existing)
}
