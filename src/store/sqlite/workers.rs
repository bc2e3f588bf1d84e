//! The workers.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::row::{self, malformed, strings, to_json};
use super::tx::Tx;
use crate::domain::name::{QueueName, WorkerId};
use crate::domain::timestamp::Timestamp;
use crate::store::{NewWorker, Served, StoreError, Worker, WorkerState};

pub(super) fn register(tx: &Tx<'_>, worker: &NewWorker) -> Result<(), StoreError> {
    let now = tx.now.as_millis();
    tx.prepare(
        "insert into workers (id, host, boot_id, pid, guardian_pid, queues, concurrency, state, started_at,
                              last_heartbeat)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'running', ?8, ?8)",
    )?
    .execute(params![
        worker.id.as_str(),
        worker.host,
        worker.boot_id,
        worker.pid,
        worker.guardian_pid,
        served_to_json(&worker.served),
        worker.concurrency,
        now,
    ])?;
    Ok(())
}

pub(super) fn retire(tx: &Tx<'_>, worker: &WorkerId) -> Result<(), StoreError> {
    let seq = seq(tx, worker)?;
    tx.prepare("update workers set state = 'stopped' where seq = ?1")?.execute([seq])?;
    Ok(())
}

pub(super) fn beat(tx: &Tx<'_>, seq: i64) -> Result<(), StoreError> {
    tx.prepare("update workers set last_heartbeat = ?2 where seq = ?1")?
        .execute(params![seq, tx.now.as_millis()])?;
    Ok(())
}

pub(super) fn seq(tx: &Tx<'_>, worker: &WorkerId) -> Result<i64, StoreError> {
    let mut select = tx.prepare("select seq from workers where id = ?1")?;
    let found = select.query_row([worker.as_str()], |row| row.get(0)).optional()?;
    found.ok_or_else(|| StoreError::NoSuchWorker(worker.clone()))
}

/// Whether a worker may take leases. One that was retired, or reaped in its absence, may not.
pub(super) fn is_live(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select state <> 'stopped' from workers where seq = ?1")?;
    Ok(select.query_row([seq], |row| row.get(0))?)
}

pub(super) fn boot_id(tx: &Tx<'_>, seq: i64) -> Result<String, StoreError> {
    let mut select = tx.prepare("select boot_id from workers where seq = ?1")?;
    Ok(select.query_row([seq], |row| row.get(0))?)
}

pub(super) fn served(tx: &Tx<'_>, seq: i64) -> Result<Served, StoreError> {
    let mut select = tx.prepare("select queues from workers where seq = ?1")?;
    let json: Option<String> = select.query_row([seq], |row| row.get(0))?;
    served_from_json(json.as_deref())
}

/// Asked outside of any transaction: it is one statement.
pub(super) fn any_live(connection: &Connection) -> Result<bool, StoreError> {
    let mut select = connection.prepare_cached("select 1 from workers where state <> 'stopped' limit 1")?;
    Ok(select.exists([])?)
}

pub(super) fn list(tx: &Tx<'_>) -> Result<Vec<Worker>, StoreError> {
    // The jobs that run are found by index jobs_by_state.
    let mut select = tx.prepare(
        "select id, host, boot_id, pid, guardian_pid, queues, concurrency,
                (select count(*) from jobs where state = 'processing' and worker_seq = workers.seq),
                state, started_at, last_heartbeat
         from workers where state <> 'stopped' order by seq",
    )?;
    let mut rows = select.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        workers.push(read(row)?);
    }
    Ok(workers)
}

fn read(row: &Row<'_>) -> Result<Worker, StoreError> {
    let state: String = row.get(8)?;
    let served: Option<String> = row.get(5)?;
    Ok(Worker {
        id: row::name(row, 0)?,
        host: row.get(1)?,
        boot_id: row.get(2)?,
        pid: row.get(3)?,
        guardian_pid: row.get(4)?,
        served: served_from_json(served.as_deref())?,
        concurrency: row.get(6)?,
        running: row.get(7)?,
        state: WorkerState::ALL
            .into_iter()
            .find(|known| known.name() == state)
            .ok_or_else(|| malformed("worker", &state))?,
        started_at: Timestamp::from_millis(row.get(9)?),
        last_heartbeat: Timestamp::from_millis(row.get(10)?),
    })
}

/// Workers that hold a lease past its time.
pub(super) fn overdue(tx: &Tx<'_>) -> Result<Vec<WorkerId>, StoreError> {
    let mut select = tx.prepare(
        "select distinct w.id from jobs j join workers w on w.seq = j.worker_seq
         where j.state = 'processing' and j.lease_until < ?1 order by w.seq",
    )?;
    let rows = select.query_map([tx.lease_now()], |row| Ok(row::name(row, 0)))?;
    rows.map(|row| row?).collect()
}

fn served_to_json(served: &Served) -> Option<String> {
    match served {
        Served::All => None,
        Served::InOrder(queues) => to_json(&queues.iter().map(QueueName::as_str).collect::<Vec<_>>()),
    }
}

fn served_from_json(json: Option<&str>) -> Result<Served, StoreError> {
    let Some(json) = json else {
        return Ok(Served::All);
    };
    let names: Result<Vec<QueueName>, _> = strings(Some(json))?.iter().map(|name| name.parse()).collect();
    Ok(Served::InOrder(names.map_err(|error| malformed("queue", error))?))
}
