//! Who holds which unique key.

use rusqlite::{OptionalExtension, params};

use super::row::{self, JobRow};
use super::tx::Tx;
use crate::domain::name::JobId;
use crate::store::StoreError;

/// The unfinished job that holds a key.
pub(super) fn holder(tx: &Tx<'_>, key: &str) -> Result<Option<JobId>, StoreError> {
    let mut select =
        tx.prepare("select j.id from unique_keys k join jobs j on j.seq = k.seq where k.key = ?1")?;
    let holder = select.query_row([key], |row| Ok(row::name(row, 0))).optional()?;
    holder.transpose()
}

pub(super) fn take(tx: &Tx<'_>, key: &str, seq: i64) -> Result<(), StoreError> {
    tx.prepare("insert into unique_keys (key, seq) values (?1, ?2)")?.execute(params![key, seq])?;
    Ok(())
}

pub(super) fn release(tx: &Tx<'_>, job: &JobRow) -> Result<(), StoreError> {
    if let Some(key) = &job.unique_key {
        tx.prepare("delete from unique_keys where key = ?1 and seq = ?2")?.execute(params![key, job.seq])?;
    }
    Ok(())
}
