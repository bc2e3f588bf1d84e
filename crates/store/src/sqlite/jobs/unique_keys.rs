//! Which job holds which unique key.

use rusqlite::{OptionalExtension, params};

use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::{Conflict, StoreError};
use domain::job::life::StateName;
use domain::job::unique::UniqueFor;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;

/// The job that holds a key. An expired holder does not count, even before its row is deleted.
pub(crate) fn holder(tx: &Tx<'_>, key: &str) -> Result<Option<JobId>, StoreError> {
    let mut select = tx.prepare(
        "select j.id from unique_keys k join jobs j on j.seq = k.seq
         where k.key = ?1 and (k.held_until is null or k.held_until > ?2)",
    )?;
    let holder =
        select.query_row(params![key, tx.now.as_millis()], |row| Ok(row::name(row, 0))).optional()?;
    holder.transpose()
}

/// Takes a free key.
pub(crate) fn take(tx: &Tx<'_>, key: &str, seq: i64, unique_for: UniqueFor) -> Result<(), StoreError> {
    tx.prepare("insert or replace into unique_keys (key, seq, held_until) values (?1, ?2, ?3)")?
        .execute(params![key, seq, unique_for.held_until(tx.now).map(Timestamp::as_millis)])?;
    Ok(())
}

/// Whether a job holds a key now.
pub(crate) fn is_held(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    // By the primary keys of both.
    let mut select = tx.prepare(
        "select 1 from jobs j cross join unique_keys k on k.key = j.unique_key
         where j.seq = ?1 and k.seq = j.seq and (k.held_until is null or k.held_until > ?2)",
    )?;
    Ok(select.exists(params![seq, tx.now.as_millis()])?)
}

/// Releases the key if the change of state requires it.
pub(crate) fn release(tx: &Tx<'_>, job: &JobRow, from: StateName, to: StateName) -> Result<(), StoreError> {
    if job.unique_key.is_some() && job.options.unique_for.gives_back(from, to) {
        return delete(tx, job);
    }
    Ok(())
}

/// Deletes the key of a job, if the job holds it.
pub(crate) fn delete(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    if let Some(key) = &job.unique_key {
        tx.prepare("delete from unique_keys where key = ?1 and seq = ?2")?.execute(params![key, job.seq])?;
    }
    Ok(())
}

/// Takes the key again for a job that is retried. The job may have released it, and another may have taken it since.
pub(crate) fn take_again(tx: &Tx<'_>, job: &JobRow) -> Result<Option<Conflict>, StoreError> {
    let unique_for = job.options.unique_for;
    let Some(key) = job.unique_key.as_ref().filter(|_| unique_for.needs_key_again(&job.life)) else {
        return Ok(None);
    };
    match holder(tx, key)? {
        Some(holder) if holder == job.id => {}
        Some(holder) => return Ok(Some(Conflict::KeyTaken { holder })),
        None if unique_for.takes_key_again() => take(tx, key, job.seq, unique_for)?,
        None => {}
    }
    Ok(None)
}
