//! Stop orders. They are ordered by number, not by time, so that clock jumps do not matter.
//!
//! An order to one worker has the worker's id in the place of the home's and no machine. A home always has a machine, so
//! neither can be taken for the other.

use super::events;
use super::workers::WorkerRow;
use crate::rows::tx::Tx;
use crate::rows::{named, params};
use crate::{Result, Stop, StopScope};
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use sys::host;

/// How many orders are kept. A worker checks every second, so none is that far behind.
const MAX_STOPS_KEPT: i64 = 1_000;

pub(crate) fn add(tx: &Tx<'_>, stop: &Stop, by: &str) -> Result<()> {
    let (machine_id, home_id) = match &stop.scope {
        StopScope::Everywhere => (None, None),
        StopScope::Home(home) => (Some(home.machine_id.as_str()), Some(home.home_id.as_str())),
        StopScope::Worker(worker) => (None, Some(worker.as_str())),
    };
    let id: i64 = tx.one(
        "insert into stops (at, by, kill_at, machine_id, home_id) values (:now, :by, :kill_at, :machine_id, :home_id)
         returning id",
        named! {
            now: tx.now,
            by,
            kill_at: stop.kill_at.map(|at| tx.lease_to_stored(at)),
            machine_id,
            home_id,
        },
        |row| row.get("id"),
    )?;
    delete_up_to(tx, id - MAX_STOPS_KEPT)?;
    let detail = match &stop.scope {
        StopScope::Everywhere => None,
        StopScope::Home(_) => Some(host::name()),
        StopScope::Worker(worker) => Some(worker.to_string()),
    };
    events::record(tx, None, "stop", by, detail.as_deref())
}

fn delete_up_to(tx: &Tx<'_>, id: i64) -> Result<()> {
    tx.execute("delete from stops where id <= :id", named! { id })?;
    Ok(())
}

/// The number of the newest order; 0 if there is none.
pub(crate) fn newest(tx: &Tx<'_>) -> Result<u64> {
    tx.one("select coalesce(max(id), 0) as newest from stops", params![], |row| row.get("newest"))
}

/// The effect of the orders that a worker has not seen when it started.
pub(crate) struct StopEffect {
    pub(crate) drain: bool,
    pub(crate) kill_at: Option<Timestamp>,
}

pub(crate) fn since(tx: &Tx<'_>, id: &WorkerId, worker: &WorkerRow) -> Result<StopEffect> {
    tx.one(
        "select count(*) > 0 as drain, min(kill_at) as kill_at from stops
         where id > :stop_seen and (home_id is null or (home_id = :home_id and machine_id = :machine_id)
                                    or (home_id = :worker and machine_id is null))",
        named! {
            stop_seen: worker.stop_seen,
            home_id: worker.home_id,
            machine_id: worker.machine_id,
            worker: id,
        },
        |row| {
            let kill_at: Option<i64> = row.get("kill_at")?;
            Ok(StopEffect { drain: row.get("drain")?, kill_at: kill_at.map(|at| tx.lease_from_stored(at)) })
        },
    )
}
