//! Stop orders. They are ordered by number, not by time, so that clock jumps do not matter.

use rusqlite::params;

use super::events;
use super::workers::WorkerRow;
use crate::sqlite::session::tx::Tx;
use crate::{Stop, StoreError};
use domain::values::timestamp::Timestamp;
use sys::host;

/// How many orders are kept. A worker checks every second, so none is that far behind.
const MAX_STOPS_KEPT: i64 = 1_000;

pub(crate) fn add(tx: &Tx<'_>, stop: &Stop, by: &str) -> Result<(), StoreError> {
    let kill_at = stop.kill_at.map(|at| tx.lease_to_stored(at));
    let id = tx
        .prepare("insert into stops (at, by, kill_at, machine_id, home_id) values (?1, ?2, ?3, ?4, ?5)")?
        .insert(params![
            tx.now.as_millis(),
            by,
            kill_at,
            stop.home.as_ref().map(|home| &home.machine_id),
            stop.home.as_ref().map(|home| &home.home_id),
        ])?;
    delete_up_to(tx, id - MAX_STOPS_KEPT)?;
    events::record(tx, None, "stop", by, stop.home.as_ref().map(|_| host::name()).as_deref())
}

fn delete_up_to(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    tx.prepare("delete from stops where id <= ?1")?.execute([id])?;
    Ok(())
}

/// The number of the newest order; 0 if there is none.
pub(crate) fn newest(tx: &Tx<'_>) -> Result<u64, StoreError> {
    let mut select = tx.prepare("select coalesce(max(id), 0) from stops")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// The effect of the orders that a worker has not seen when it started.
pub(crate) struct StopEffect {
    pub(crate) drain: bool,
    pub(crate) kill_at: Option<Timestamp>,
}

pub(crate) fn since(tx: &Tx<'_>, worker: &WorkerRow) -> Result<StopEffect, StoreError> {
    let mut select = tx.prepare(
        "select count(*) > 0, min(kill_at) from stops
         where id > ?1 and (home_id is null or (home_id = ?2 and machine_id = ?3))",
    )?;
    let (drain, kill_at) = select
        .query_row(params![worker.stop_seen, worker.home_id, worker.machine_id], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
    Ok(StopEffect { drain, kill_at: kill_at.map(|at| tx.lease_from_stored(at)) })
}
