//! The table of workers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{deliveries, events, stops};
use crate::sqlite::jobs::leases;
use crate::sqlite::session::row;
use crate::sqlite::session::row::{malformed, strings, to_json};
use crate::sqlite::session::tx::Tx;
use crate::{NewWorker, ServedJobs, StoreError, Worker, WorkerSlots, WorkerState};
use domain::values::name::{QueueName, WorkerId};
use domain::values::timestamp::Timestamp;
use sys::host::{FileId, HostKey, Origin};

/// Returns the newest stop order that the worker must ignore. The folder may be relative to that of the database.
pub(crate) fn register(tx: &Tx<'_>, worker: &NewWorker, folder: &Path) -> Result<u64, StoreError> {
    let now = tx.now.as_millis();
    let stop_seen = match worker.stop_seen {
        Some(seen) => seen,
        None => stops::newest(tx)?,
    };
    // A path need not be valid text: the cast stores its bytes unchanged.
    tx.prepare(
        "insert into workers (id, host, boot_id, pid, supervisor_pid, queues, concurrency, state, started_at,
                              last_heartbeat, folder, stop_seen, machine_id, home_id, pid_namespace, lock_device,
                              lock_inode)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'running', ?8, ?8, cast(?9 as text), ?10, ?11, ?12, ?13, ?14, ?15)",
    )?
    .execute(params![
        worker.id.as_str(),
        worker.host,
        worker.origin.key.boot_id,
        worker.pid,
        worker.supervisor_pid,
        served_to_json(&worker.served),
        worker.concurrency,
        now,
        folder.as_os_str().as_bytes(),
        stop_seen,
        worker.origin.key.machine_id,
        worker.origin.key.home_id,
        worker.origin.pid_namespace.cast_signed(),
        worker.origin.lock.device.cast_signed(),
        worker.origin.lock.inode.cast_signed(),
    ])?;
    note(tx, &worker.served, "worker_started", &worker.id, &format!("{}, pid {}", worker.host, worker.pid))?;
    Ok(stop_seen)
}

/// Records an event of a worker. A worker for a single job is part of that job's history instead.
fn note(
    tx: &Tx<'_>,
    served: &ServedJobs,
    event: &str,
    worker: &WorkerId,
    detail: &str,
) -> Result<(), StoreError> {
    match served {
        ServedJobs::All | ServedJobs::InOrder(_) => {
            events::record(tx, None, event, worker.as_str(), Some(detail))
        }
        ServedJobs::Job(_) => Ok(()),
    }
}

/// Records the end of a worker, unless it was recorded before.
pub(crate) fn note_end(tx: &Tx<'_>, worker: &WorkerId, event: &str, detail: &str) -> Result<(), StoreError> {
    let known = find(tx, worker)?;
    match known.state {
        WorkerState::Running | WorkerState::Draining => note(tx, &known.served, event, worker, detail),
        WorkerState::Stopped => Ok(()),
    }
}

/// A worker that reports that it has stopped runs nothing: any lease it holds stems from a claim that it never saw
/// commit.
pub(crate) fn change_state(tx: &Tx<'_>, worker: &WorkerId, state: WorkerState) -> Result<(), StoreError> {
    let seq = seq(tx, worker)?;
    if state == WorkerState::Stopped {
        for job in leases::held_by(tx, seq)? {
            leases::release(tx, &job, seq)?;
        }
        deliveries::give_back(tx, seq)?;
        note_end(tx, worker, "worker_stopped", "all its jobs are finished")?;
    }
    set_state(tx, seq, state)
}

/// A stopped worker stays stopped: it may have been reaped in its absence.
pub(crate) fn set_state(tx: &Tx<'_>, seq: i64, state: WorkerState) -> Result<(), StoreError> {
    // Without jobs, the worker appears in no history.
    tx.prepare(
        "update workers set state = ?2, last_seq = coalesce((select max(seq) from jobs), 0)
         where seq = ?1 and state <> 'stopped'",
    )?
    .execute(params![seq, state.name()])?;
    Ok(())
}

pub(crate) fn set_slots(tx: &Tx<'_>, worker: &WorkerId, slots: WorkerSlots) -> Result<(), StoreError> {
    let WorkerSlots { concurrency, most } = slots;
    let more = (most > concurrency).then_some(most);
    tx.prepare("update workers set concurrency = ?2, slots = ?3 where id = ?1")?.execute(params![
        worker.as_str(),
        concurrency,
        more
    ])?;
    Ok(())
}

/// The columns that its orders depend on.
pub(crate) struct WorkerRow {
    pub(crate) seq: i64,
    pub(crate) machine_id: String,
    pub(crate) home_id: String,
    pub(crate) state: WorkerState,
    pub(crate) stop_seen: u64,
    pub(crate) served: ServedJobs,
}

pub(crate) fn find(tx: &Tx<'_>, worker: &WorkerId) -> Result<WorkerRow, StoreError> {
    let mut select =
        tx.prepare("select seq, state, stop_seen, queues, machine_id, home_id from workers where id = ?1")?;
    let mut rows = select.query([worker.as_str()])?;
    let Some(row) = rows.next()? else {
        return Err(StoreError::NoSuchWorker(worker.clone()));
    };
    let served: Option<String> = row.get(3)?;
    Ok(WorkerRow {
        seq: row.get(0)?,
        state: read_state(row, 1)?,
        stop_seen: row.get(2)?,
        served: served_from_json(served.as_deref())?,
        machine_id: row.get(4)?,
        home_id: row.get(5)?,
    })
}

pub(crate) fn beat(tx: &Tx<'_>, seq: i64) -> Result<(), StoreError> {
    tx.prepare("update workers set last_heartbeat = ?2 where seq = ?1")?
        .execute(params![seq, tx.now.as_millis()])?;
    Ok(())
}

pub(crate) fn seq(tx: &Tx<'_>, worker: &WorkerId) -> Result<i64, StoreError> {
    let mut select = tx.prepare("select seq from workers where id = ?1")?;
    let found = select.query_row([worker.as_str()], |row| row.get(0)).optional()?;
    found.ok_or_else(|| StoreError::NoSuchWorker(worker.clone()))
}

/// Whether a worker may take leases. A stopped or reaped one may not.
pub(crate) fn is_live(tx: &Tx<'_>, seq: i64) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select state <> 'stopped' from workers where seq = ?1")?;
    Ok(select.query_row([seq], |row| row.get(0))?)
}

pub(crate) fn boot_id(tx: &Tx<'_>, seq: i64) -> Result<String, StoreError> {
    let mut select = tx.prepare("select boot_id from workers where seq = ?1")?;
    Ok(select.query_row([seq], |row| row.get(0))?)
}

pub(crate) fn host(tx: &Tx<'_>, seq: i64) -> Result<String, StoreError> {
    let mut select = tx.prepare("select host from workers where seq = ?1")?;
    Ok(select.query_row([seq], |row| row.get(0))?)
}

pub(crate) fn served(tx: &Tx<'_>, seq: i64) -> Result<ServedJobs, StoreError> {
    let mut select = tx.prepare("select queues from workers where seq = ?1")?;
    let json: Option<String> = select.query_row([seq], |row| row.get(0))?;
    served_from_json(json.as_deref())
}

/// A single statement, which needs no transaction.
pub(crate) fn any_live(connection: &Connection) -> Result<bool, StoreError> {
    let mut select = connection.prepare_cached("select 1 from workers where state <> 'stopped' limit 1")?;
    Ok(select.exists([])?)
}

pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Worker>, StoreError> {
    // By index workers_live. The running jobs are found by index jobs_by_state, once for all workers.
    let mut select = tx.prepare(
        "select id, host, boot_id, pid, supervisor_pid, queues, concurrency, coalesce(held.count, 0), state, started_at,
                last_heartbeat, folder, held.until, coalesce(slots, concurrency), machine_id, home_id, pid_namespace,
                lock_device, lock_inode
         from workers left join (select worker_seq, count(*) as count, min(lease_until) as until
                                 from jobs where state = 'processing' group by worker_seq) held
              on held.worker_seq = workers.seq
         where state <> 'stopped' order by seq",
    )?;
    let mut rows = select.query([])?;
    let mut workers = Vec::new();
    while let Some(row) = rows.next()? {
        workers.push(read(tx, row)?);
    }
    Ok(workers)
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Worker, StoreError> {
    let served: Option<String> = row.get(5)?;
    let lease_until: Option<i64> = row.get(12)?;
    let (held, slots): (u32, u32) = (row.get(7)?, row.get(13)?);
    Ok(Worker {
        id: row::name(row, 0)?,
        host: row.get(1)?,
        origin: read_origin(row)?,
        pid: row.get(3)?,
        supervisor_pid: row.get(4)?,
        served: served_from_json(served.as_deref())?,
        concurrency: row.get(6)?,
        held,
        running: held.min(slots),
        state: read_state(row, 8)?,
        started_at: Timestamp::from_millis(row.get(9)?),
        last_heartbeat: Timestamp::from_millis(row.get(10)?),
        folder: read_path(row, 11)?,
        lease_until: lease_until.map(|until| tx.lease_from_stored(until)),
        overdue: lease_until.is_some_and(|until| until < tx.lease_now()),
    })
}

fn read_origin(row: &Row<'_>) -> Result<Origin, StoreError> {
    let number = |column| Ok::<u64, StoreError>(row.get::<_, i64>(column)?.cast_unsigned());
    Ok(Origin {
        key: HostKey { machine_id: row.get(14)?, boot_id: row.get(2)?, home_id: row.get(15)? },
        pid_namespace: number(16)?,
        lock: FileId { device: number(17)?, inode: number(18)? },
    })
}

fn read_state(row: &Row<'_>, column: usize) -> Result<WorkerState, StoreError> {
    let word: String = row.get(column)?;
    let state = WorkerState::ALL.into_iter().find(|known| known.name() == word);
    state.ok_or_else(|| malformed("worker", &word))
}

pub(crate) fn read_path(row: &Row<'_>, column: usize) -> Result<PathBuf, StoreError> {
    let bytes = row.get_ref(column)?.as_bytes().map_err(|error| malformed("path", error))?;
    Ok(OsStr::from_bytes(bytes).into())
}

/// The stored form of a worker that serves a single job.
#[derive(Serialize, Deserialize)]
struct SingleJob {
    job: String,
}

fn served_to_json(served: &ServedJobs) -> Option<String> {
    match served {
        ServedJobs::All => None,
        ServedJobs::InOrder(queues) => to_json(&queues.iter().map(QueueName::as_str).collect::<Vec<_>>()),
        ServedJobs::Job(job) => {
            let only = SingleJob { job: job.to_string() };
            Some(serde_json::to_string(&only).expect("a name serializes to JSON"))
        }
    }
}

fn served_from_json(json: Option<&str>) -> Result<ServedJobs, StoreError> {
    let Some(json) = json else {
        return Ok(ServedJobs::All);
    };
    if json.starts_with('{') {
        let only: SingleJob = serde_json::from_str(json).map_err(|error| malformed("worker", error))?;
        return Ok(ServedJobs::Job(only.job.parse().map_err(|error| malformed("job", error))?));
    }
    let names: Result<Vec<QueueName>, _> = strings(Some(json))?.iter().map(|name| name.parse()).collect();
    Ok(ServedJobs::InOrder(names.map_err(|error| malformed("queue", error))?))
}
