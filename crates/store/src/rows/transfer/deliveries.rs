//! Exporting and importing pending deliveries.

use rusqlite::params;
use serde_json::{Map, Value};

use super::export::{Sink, each, timestamp};
use super::import::malformed;
use super::scope::Scope;
use crate::StoreError;
use crate::rows::tx::Tx;
use crate::transfer::{DeliveryLine, ImportError, Line};

/// A delivery in flight is exported as due, as if no worker had taken it.
pub(super) fn export(tx: &Tx<'_>, scope: &Scope, sink: Sink<'_>) -> Result<bool, StoreError> {
    each(
        tx,
        sink,
        "select h.name, d.name, d.payload, d.created_at,
                case when d.worker_seq is null then d.due_at else d.created_at end, d.tries
         from deliveries d cross join hooks h on h.id = d.hook_id where d.id > 0 order by d.id",
        |_| Ok(scope.is_all()),
        |row| {
            Ok(Line::Delivery(DeliveryLine {
                hook: row.get(0)?,
                name: row.get(1)?,
                payload: row.get(2)?,
                created_at: timestamp(row, 3)?,
                due_at: timestamp(row, 4)?,
                tries: row.get(5)?,
            }))
        },
    )
}

/// For a hook that was imported with it.
pub(super) fn import(tx: &Tx<'_>, line: &DeliveryLine, hook_id: i64) -> Result<(), ImportError> {
    let bad = |why: &dyn std::fmt::Display| malformed(format!("delivery `{}`", line.name), why);
    serde_json::from_str::<Map<String, Value>>(&line.payload).map_err(|error| bad(&error))?;
    tx.prepare(
        "insert into deliveries (name, hook_id, payload, created_at, due_at, tries)
         values (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        line.name,
        hook_id,
        line.payload,
        line.created_at.as_millis(),
        line.due_at.as_millis(),
        line.tries,
    ])
    .map_err(|error| bad(&error))?;
    Ok(())
}
