//! Exporting and importing batches. Their counters follow from their jobs.

use rusqlite::params;

use super::export::{Sink, each, timestamp};
use super::import::{malformed, parse_name};
use super::scope::Scope;
use crate::StoreError;
use crate::rows::jobs::row;
use crate::rows::tx::Tx;
use crate::rows::tables::batches;
use crate::transfer::{BatchLine, ImportError, Line};
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;

pub(super) fn export(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select id, name, created_at, finished_at from batches where id > 0 order by id",
        |row| Ok(scope.has_batch(row.get(0)?)),
        |row| {
            Ok(Line::Batch(BatchLine {
                name: row.get(1)?,
                created_at: timestamp(row, 2)?,
                finished_at: row::time(row, 3)?,
            }))
        },
    )
}

/// An existing batch gets the jobs too. Its completion is updated at the end, as after any other change.
pub(super) fn import(tx: &Tx<'_>, line: &BatchLine) -> Result<(), ImportError> {
    let name: BatchName = parse_name(&line.name, "a batch")?;
    tx.prepare("insert or ignore into batches (name, created_at, finished_at) values (?1, ?2, ?3)")?
        .execute(params![line.name, line.created_at.as_millis(), line.finished_at.map(Timestamp::as_millis)])
        .map_err(|error| malformed(format!("batch `{name}`"), error))?;
    batches::id(tx, &name)?;
    Ok(())
}
