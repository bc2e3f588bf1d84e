//! Batches and the number of their jobs.

use std::collections::BTreeMap;

use super::outbox;
use crate::rows::keys::BatchKey;
use crate::rows::tx::Tx;
use crate::rows::{Row, named, params, read, wording};
use crate::{Batch, Result};
use domain::job::life::StateName;
use domain::plan::crossing::BatchCrossing;
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;

/// The row id of a batch, which is created if it is new. A batch that gets no job is deleted at the end of the
/// transaction. On PostgreSQL others may be adding jobs to the same batch: its row is locked, so that they wait before they
/// count.
pub(crate) fn id(tx: &mut Tx<'_>, name: &BatchName) -> Result<BatchKey> {
    let find = wording!("select id from batches where name = ?1", ("" | " for no key update"));
    let id = match tx.value(find.of(tx), params![name])? {
        Some(id) => id,
        None => tx.one(
            "insert into batches (name, created_at) values (:name, :now)
             on conflict (name) do update set finished_at = batches.finished_at returning id",
            named! { name, now: tx.now },
            |row| row.get("id"),
        )?,
    };
    tx.counters.touch_batch(id);
    Ok(id)
}

pub(crate) fn find_id(tx: &Tx<'_>, name: &BatchName) -> Result<Option<BatchKey>> {
    tx.value("select id from batches where name = :name", named! { name })
}

/// The columns that a claim needs.
pub(crate) struct BatchRow {
    pub(crate) id: BatchKey,
    pub(crate) created_at: Timestamp,
}

pub(crate) fn find_row(tx: &Tx<'_>, name: &BatchName) -> Result<Option<BatchRow>> {
    tx.first("select id, created_at from batches where name = :name", named! { name }, |row| {
        Ok(BatchRow { id: row.get("id")?, created_at: row.get("created_at")? })
    })
}

/// Whether all jobs of a batch are finished, or the batch does not exist.
pub(crate) fn is_finished_or_gone(tx: &Tx<'_>, name: &BatchName) -> Result<bool> {
    let unfinished = "select 1 from batches where name = :name and finished_at is null";
    Ok(!tx.exists(unfinished, named! { name })?)
}

/// How many jobs of a batch could be claimed at some time: those that are pending or wait for a retry.
pub(crate) fn count_claimable(tx: &Tx<'_>, batch_id: BatchKey) -> Result<usize> {
    // By the primary key of batch_counters.
    let count: Option<Option<i64>> = tx.value(
        "select cast(sum(count) as bigint) from batch_counters
         where batch_id = :batch_id and (state = 'pending' or state = 'failed')",
        named! { batch_id },
    )?;
    Ok(usize::try_from(count.flatten().unwrap_or(0)).unwrap_or(0))
}

pub(crate) fn count(tx: &Tx<'_>, batch_id: BatchKey, state: StateName, change: i64) -> Result<()> {
    let updated = tx.execute(
        "update batch_counters set count = count + :change where batch_id = :batch_id and state = :state",
        named! { batch_id, state, change },
    )?;
    if updated == 0 {
        tx.execute(
            "insert into batch_counters (batch_id, state, count) values (:batch_id, :state, :change)",
            named! { batch_id, state, change },
        )?;
    }
    Ok(())
}

/// Updates whether a batch is finished, once at the end of each transaction that changed its jobs. Adding or retrying a
/// job makes a finished batch unfinished again.
pub(crate) fn update_completion(tx: &Tx<'_>, batch_id: BatchKey) -> Result<()> {
    let counts = counts(tx, batch_id)?;
    if counts.is_empty() {
        return delete(tx, batch_id);
    }
    let (name, finished_at): (String, Option<Timestamp>) =
        tx.one("select name, finished_at from batches where id = :batch_id", named! { batch_id }, |row| {
            Ok((row.get("name")?, row.get("finished_at")?))
        })?;
    let is_over = counts.keys().all(|state| state.is_finished());
    match BatchCrossing::of(is_over, finished_at.is_some()) {
        BatchCrossing::Finishes => {
            set_finished(tx, batch_id, Some(tx.now))?;
            outbox::batch_finished(tx, &name, &counts)
        }
        BatchCrossing::Resumes => set_finished(tx, batch_id, None),
        BatchCrossing::None => Ok(()),
    }
}

fn set_finished(tx: &Tx<'_>, batch_id: BatchKey, at: Option<Timestamp>) -> Result<()> {
    tx.execute("update batches set finished_at = :at where id = :batch_id", named! { batch_id, at })?;
    Ok(())
}

fn delete(tx: &Tx<'_>, batch_id: BatchKey) -> Result<()> {
    tx.execute("delete from batch_counters where batch_id = :batch_id", named! { batch_id })?;
    tx.execute("delete from batches where id = :batch_id", named! { batch_id })?;
    Ok(())
}

pub(crate) fn list(tx: &Tx<'_>, limit: usize) -> Result<Vec<Batch>> {
    tx.all(
        "select id, name, created_at, finished_at from batches where id <= :last order by id desc limit :limit",
        named! { last: i64::MAX, limit },
        |row| read(tx, row),
    )
}

pub(crate) fn find(tx: &Tx<'_>, name: &BatchName) -> Result<Option<Batch>> {
    tx.first(
        "select id, name, created_at, finished_at from batches where name = :name",
        named! { name },
        |row| read(tx, row),
    )
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Batch> {
    Ok(read!(row, Batch { name, created_at, finished_at, counts: counts(tx, row.get("id")?)? }))
}

fn counts(tx: &Tx<'_>, batch_id: BatchKey) -> Result<BTreeMap<StateName, u64>> {
    // By the primary key of batch_counters.
    let counts = tx.all(
        "select state, count from batch_counters where batch_id = :batch_id and count > 0",
        named! { batch_id },
        |row| Ok((row.get("state")?, row.get("count")?)),
    )?;
    Ok(counts.into_iter().collect())
}
