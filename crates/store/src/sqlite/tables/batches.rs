//! Batches and the number of their jobs.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};

use super::outbox;
use crate::sqlite::session::row;
use crate::sqlite::session::row::malformed;
use crate::sqlite::session::tx::Tx;
use crate::{Batch, StoreError};
use domain::job::life::StateName;
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;

/// The row id of a batch, which is created if it is new. A batch that gets no job is deleted at the end of the
/// transaction.
pub(crate) fn id(tx: &Tx<'_>, name: &BatchName) -> Result<i64, StoreError> {
    let id = match find_id(tx, name)? {
        Some(id) => id,
        None => tx
            .prepare("insert into batches (name, created_at) values (?1, ?2)")?
            .insert(params![name.as_str(), tx.now.as_millis()])?,
    };
    tx.counters.borrow_mut().touch_batch(id);
    Ok(id)
}

pub(crate) fn find_id(tx: &Tx<'_>, name: &BatchName) -> Result<Option<i64>, StoreError> {
    let mut select = tx.prepare("select id from batches where name = ?1")?;
    Ok(select.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

pub(crate) fn count(tx: &Tx<'_>, batch_id: i64, state: StateName, change: i64) -> Result<(), StoreError> {
    let mut update =
        tx.prepare("update batch_counters set count = count + ?3 where batch_id = ?1 and state = ?2")?;
    if update.execute(params![batch_id, state.name(), change])? == 0 {
        tx.prepare("insert into batch_counters (batch_id, state, count) values (?1, ?2, ?3)")?
            .execute(params![batch_id, state.name(), change])?;
    }
    Ok(())
}

/// Updates whether a batch is finished, once at the end of each transaction that changed its jobs. Adding or retrying a
/// job makes a finished batch unfinished again.
pub(crate) fn update_completion(tx: &Tx<'_>, batch_id: i64) -> Result<(), StoreError> {
    let counts = counts(tx, batch_id)?;
    if counts.is_empty() {
        return delete(tx, batch_id);
    }
    let (name, finished_at): (String, Option<i64>) = tx
        .prepare("select name, finished_at from batches where id = ?1")?
        .query_row([batch_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_over = counts.keys().all(|state| state.is_finished());
    match (is_over, finished_at) {
        (true, None) => {
            set_finished(tx, batch_id, Some(tx.now))?;
            outbox::batch_finished(tx, &name, &counts)
        }
        (false, Some(_)) => set_finished(tx, batch_id, None),
        (true, Some(_)) | (false, None) => Ok(()),
    }
}

fn set_finished(tx: &Tx<'_>, batch_id: i64, at: Option<Timestamp>) -> Result<(), StoreError> {
    tx.prepare("update batches set finished_at = ?2 where id = ?1")?
        .execute(params![batch_id, at.map(Timestamp::as_millis)])?;
    Ok(())
}

fn delete(tx: &Tx<'_>, batch_id: i64) -> Result<(), StoreError> {
    tx.prepare("delete from batch_counters where batch_id = ?1")?.execute([batch_id])?;
    tx.prepare("delete from batches where id = ?1")?.execute([batch_id])?;
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>, limit: usize) -> Result<Vec<Batch>, StoreError> {
    let mut select = tx.prepare(
        "select id, name, created_at, finished_at from batches where id <= ?1 order by id desc limit ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select.query(params![i64::MAX, limit])?;
    let mut batches = Vec::new();
    while let Some(row) = rows.next()? {
        batches.push(read(tx, row)?);
    }
    Ok(batches)
}

pub(crate) fn find(tx: &Tx<'_>, name: &BatchName) -> Result<Option<Batch>, StoreError> {
    let mut select = tx.prepare("select id, name, created_at, finished_at from batches where name = ?1")?;
    select.query_row([name.as_str()], |row| Ok(read(tx, row))).optional()?.transpose()
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Batch, StoreError> {
    Ok(Batch {
        name: row::name(row, 1)?,
        created_at: Timestamp::from_millis(row.get(2)?),
        finished_at: row::time(row, 3)?,
        counts: counts(tx, row.get(0)?)?,
    })
}

fn counts(tx: &Tx<'_>, batch_id: i64) -> Result<BTreeMap<StateName, u64>, StoreError> {
    // By the primary key of batch_counters.
    let mut select =
        tx.prepare("select state, count from batch_counters where batch_id = ?1 and count > 0")?;
    let mut rows = select.query([batch_id])?;
    let mut counts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        let state = StateName::from_name(&word).ok_or_else(|| malformed("state", &word))?;
        counts.insert(state, row.get(1)?);
    }
    Ok(counts)
}
