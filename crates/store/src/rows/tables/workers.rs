//! The table of workers.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{counters, deliveries, events, stops};
use crate::rows::jobs::row::{strings, to_json};
use crate::rows::jobs::{causes, leases};
use crate::rows::keys::WorkerSeq;
use crate::rows::tx::Tx;
use crate::rows::value::malformed;
use crate::rows::{Row, Sql, named, params, wording};
use crate::{Beat, NewWorker, Result, ServedJobs, StoreError, Worker, WorkerSlots, WorkerState};
use domain::values::name::{QueueName, WorkerId};
use domain::values::timestamp::Timestamp;
use sys::host::{FileId, HostKey, Origin};

/// Returns the newest stop order that the worker must ignore. The folder may be relative to that of the database.
pub(crate) fn register(tx: &Tx<'_>, worker: &NewWorker, folder: &Path) -> Result<u64> {
    let stop_seen = match worker.stop_seen {
        Some(seen) => seen,
        None => stops::newest(tx)?,
    };
    tx.execute(
        "insert into workers (id, host, boot_id, pid, supervisor_pid, queues, concurrency, state, started_at,
                              last_heartbeat, folder, stop_seen, machine_id, home_id, pid_namespace, lock_device,
                              lock_inode)
         values (:id, :host, :boot_id, :pid, :supervisor_pid, :queues, :concurrency, 'running', :now, :now,
                 :folder, :stop_seen, :machine_id, :home_id, :pid_namespace, :lock_device, :lock_inode)",
        named! {
            id: worker.id,
            host: worker.host,
            boot_id: worker.origin.key.boot_id,
            pid: worker.pid,
            supervisor_pid: worker.supervisor_pid,
            queues: served_to_json(&worker.served),
            concurrency: worker.concurrency,
            now: tx.now,
            folder,
            stop_seen,
            machine_id: worker.origin.key.machine_id,
            home_id: worker.origin.key.home_id,
            pid_namespace: worker.origin.pid_namespace.cast_signed(),
            lock_device: worker.origin.lock.device.cast_signed(),
            lock_inode: worker.origin.lock.inode.cast_signed(),
        },
    )?;
    note(tx, &worker.served, "worker_started", &worker.id, &format!("{}, pid {}", worker.host, worker.pid))?;
    Ok(stop_seen)
}

/// Records an event of a worker. A worker for certain jobs is part of their history instead.
fn note(tx: &Tx<'_>, served: &ServedJobs, event: &str, worker: &WorkerId, detail: &str) -> Result<()> {
    if !served.takes_new_jobs() {
        return Ok(());
    }
    events::record(tx, None, event, worker.as_str(), Some(detail))
}

/// Records the end of a worker, unless it was recorded before.
pub(crate) fn note_end(tx: &Tx<'_>, worker: &WorkerId, event: &str, detail: &str) -> Result<()> {
    let known = find(tx, worker)?;
    match known.state {
        WorkerState::Running | WorkerState::Draining => note(tx, &known.served, event, worker, detail),
        WorkerState::Stopped => Ok(()),
    }
}

/// A worker that reports that it has stopped runs nothing: any lease it holds stems from a claim that it never saw
/// commit.
pub(crate) fn change_state(tx: &mut Tx<'_>, worker: &WorkerId, state: WorkerState) -> Result<()> {
    let seq = seq(tx, worker)?;
    if state == WorkerState::Stopped {
        for job in leases::held_by(tx, seq)? {
            leases::release(tx, &job, seq)?;
        }
        deliveries::give_back(tx, seq, None)?;
        note_end(tx, worker, "worker_stopped", &process(tx, seq)?)?;
    }
    set_state(tx, seq, state)
}

/// A stopped worker stays stopped: it may have been reaped in its absence.
pub(crate) fn set_state(tx: &Tx<'_>, seq: WorkerSeq, state: WorkerState) -> Result<()> {
    // Without jobs, the worker appears in no history.
    tx.execute(
        "update workers set state = :state, last_seq = coalesce((select max(seq) from jobs), 0)
         where seq = :seq and state <> 'stopped'",
        named! { seq, state },
    )?;
    if state == WorkerState::Stopped {
        counters::fold(tx, seq)?;
        causes::fold(tx, seq)?;
    }
    Ok(())
}

pub(crate) fn set_slots(tx: &Tx<'_>, worker: &WorkerId, slots: WorkerSlots) -> Result<()> {
    let WorkerSlots { concurrency, most } = slots;
    tx.execute(
        "update workers set concurrency = :concurrency, slots = :slots where id = :worker",
        named! { worker, concurrency, slots: (most > concurrency).then_some(most) },
    )?;
    Ok(())
}

pub(crate) fn set_health(tx: &Tx<'_>, worker: &WorkerId, problem: Option<&str>) -> Result<()> {
    tx.execute("update workers set health = :problem where id = :worker", named! { worker, problem })?;
    Ok(())
}

/// The columns that its orders depend on.
pub(crate) struct WorkerRow {
    pub(crate) seq: WorkerSeq,
    pub(crate) machine_id: String,
    pub(crate) home_id: String,
    pub(crate) state: WorkerState,
    pub(crate) stop_seen: u64,
    pub(crate) served: ServedJobs,
}

pub(crate) fn find(tx: &Tx<'_>, worker: &WorkerId) -> Result<WorkerRow> {
    let found = tx.first(
        "select seq, state, stop_seen, queues, machine_id, home_id from workers where id = :worker",
        named! { worker },
        |row| {
            Ok(WorkerRow {
                seq: row.get("seq")?,
                state: row.get("state")?,
                stop_seen: row.get("stop_seen")?,
                served: served_from_json(row.get("queues")?)?,
                machine_id: row.get("machine_id")?,
                home_id: row.get("home_id")?,
            })
        },
    )?;
    found.ok_or_else(|| StoreError::NoSuchWorker(worker.clone()))
}

pub(crate) const BEAT: &str = "update workers set last_heartbeat = ?2, beat = beat + 1 where seq = ?1";

pub(crate) fn beat(tx: &Tx<'_>, seq: WorkerSeq) -> Result<()> {
    tx.execute(BEAT, params![seq, tx.now])?;
    Ok(())
}

/// The beats of all workers that have not stopped.
pub(crate) fn beats(tx: &Tx<'_>) -> Result<Vec<Beat>> {
    // By index workers_live.
    tx.all("select id, beat from workers where state <> 'stopped'", params![], |row| {
        Ok(Beat { worker: row.get("id")?, number: row.get("beat")? })
    })
}

pub(crate) const SEQ: &str = "select seq from workers where id = ?1";

pub(crate) fn seq(tx: &Tx<'_>, worker: &WorkerId) -> Result<WorkerSeq> {
    if let Some((_, seq)) = tx.last_worker.borrow().as_ref().filter(|(id, _)| id == worker) {
        return Ok(*seq);
    }
    let found = tx.value(SEQ, params![worker])?;
    let seq = found.ok_or_else(|| StoreError::NoSuchWorker(worker.clone()))?;
    tx.last_worker.replace(Some((worker.clone(), seq)));
    Ok(seq)
}

pub(crate) fn find_seq(tx: &Tx<'_>, worker: &WorkerId) -> Result<Option<WorkerSeq>> {
    tx.value(SEQ, params![worker])
}

pub(crate) const IS_LIVE: &str = "select state <> 'stopped' from workers where seq = ?1";

/// Whether a worker may take leases. A stopped or reaped one may not.
pub(crate) fn is_live(tx: &Tx<'_>, seq: WorkerSeq) -> Result<bool> {
    tx.one(IS_LIVE, params![seq], |row| row.get(0))
}

pub(crate) const BOOT_ID: &str = "select boot_id from workers where seq = ?1";

pub(crate) fn boot_id(tx: &Tx<'_>, seq: WorkerSeq) -> Result<String> {
    if let Some((_, boot_id)) = tx.last_boot_id.borrow().as_ref().filter(|(known, _)| *known == seq) {
        return Ok(boot_id.clone());
    }
    let boot_id: String = tx.one(BOOT_ID, params![seq], |row| row.get(0))?;
    tx.last_boot_id.replace(Some((seq, boot_id.clone())));
    Ok(boot_id)
}

pub(crate) fn host(tx: &Tx<'_>, seq: WorkerSeq) -> Result<String> {
    tx.one("select host from workers where seq = :seq", named! { seq }, |row| row.get("host"))
}

/// `vm, pid 3442`
fn process(tx: &Tx<'_>, seq: WorkerSeq) -> Result<String> {
    tx.one("select host || ', pid ' || pid from workers where seq = ?1", params![seq], |row| row.get(0))
}

/// As `is_live` and `served`, in one statement, for the turns of workers.
pub(crate) fn is_live_and_served(tx: &Tx<'_>, seq: WorkerSeq) -> Result<(bool, ServedJobs)> {
    tx.one("select state <> 'stopped', queues from workers where seq = ?1", params![seq], |row| {
        Ok((row.get(0)?, served_from_json(row.get(1)?)?))
    })
}

pub(crate) fn served(tx: &Tx<'_>, seq: WorkerSeq) -> Result<ServedJobs> {
    tx.one("select queues from workers where seq = ?1", params![seq], |row| served_from_json(row.get(0)?))
}

pub(crate) const ANY_LIVE: &str = "select 1 from workers where state <> 'stopped' limit 1";

/// A single statement, which needs no transaction.
pub(crate) fn any_live(sql: &dyn Sql) -> Result<bool> {
    let mut found = false;
    sql.query(ANY_LIVE, params![], &mut |_| {
        found = true;
        Ok(false)
    })?;
    Ok(found)
}

/// The workers that have not stopped: all of them, or those of one machine.
pub(crate) fn list(tx: &Tx<'_>, machine_id: Option<&str>) -> Result<Vec<Worker>> {
    // By index workers_live. On SQLite the running jobs are found by index jobs_by_state, once for all workers. On PostgreSQL
    // a fleet may run so many that each worker, which looks at the others on its machine, must not read them all: there
    // they are found by index jobs_running.
    let sql = wording!(
        "select id, host, boot_id, pid, supervisor_pid, queues, concurrency, coalesce(held.count, 0) as held, state,
                started_at, last_heartbeat, folder, held.until as lease_until, coalesce(slots, concurrency) as slots,
                machine_id, home_id, pid_namespace, lock_device, lock_inode, beat, health
         from workers left join ",
        ("(select worker_seq, count(*) as count, min(lease_until) as until
           from jobs where state = 'processing' group by worker_seq) held on held.worker_seq = workers.seq"
            | "lateral (select count(*) as count, min(lease_until) as until from jobs
                        where state = 'processing' and worker_seq = workers.seq) held on true"),
        " where state <> 'stopped' and (machine_id = :machine_id or cast(:machine_id as text) is null) order by seq"
    );
    tx.all(sql.of(tx), named! { machine_id }, |row| read(tx, row))
}

/// How many starts are returned at most.
const MAX_STARTS: usize = 10_000;

/// The newest starts, in the order of time.
pub(crate) fn starts(tx: &Tx<'_>, since: Timestamp) -> Result<Vec<Timestamp>> {
    // Reads all rows. A stopped worker is deleted when the jobs of its time are.
    let mut starts: Vec<Timestamp> = tx.values(
        "select started_at from workers
         where started_at >= :since and (queues is null or substr(queues, 1, 1) <> '{')
         order by seq desc limit :limit",
        named! { since, limit: MAX_STARTS },
    )?;
    starts.sort_unstable();
    Ok(starts)
}

fn read(tx: &Tx<'_>, row: &Row<'_>) -> Result<Worker> {
    let lease_until: Option<i64> = row.get("lease_until")?;
    let (held, slots): (u32, u32) = (row.get("held")?, row.get("slots")?);
    Ok(Worker {
        id: row.get("id")?,
        host: row.get("host")?,
        origin: read_origin(row)?,
        pid: row.get("pid")?,
        supervisor_pid: row.get("supervisor_pid")?,
        served: served_from_json(row.get("queues")?)?,
        concurrency: row.get("concurrency")?,
        held,
        running: held.min(slots),
        state: row.get("state")?,
        started_at: row.get("started_at")?,
        last_heartbeat: row.get("last_heartbeat")?,
        beat: row.get("beat")?,
        health: row.get("health")?,
        folder: row.get("folder")?,
        lease_until: lease_until.map(|until| tx.lease_from_stored(until)),
        overdue: lease_until.is_some_and(|until| until < tx.lease_now()),
    })
}

fn read_origin(row: &Row<'_>) -> Result<Origin> {
    let number = |column| Ok::<u64, StoreError>(row.get::<i64>(column)?.cast_unsigned());
    Ok(Origin {
        key: HostKey {
            machine_id: row.get("machine_id")?,
            boot_id: row.get("boot_id")?,
            home_id: row.get("home_id")?,
        },
        pid_namespace: number("pid_namespace")?,
        lock: FileId { device: number("lock_device")?, inode: number("lock_inode")? },
    })
}

/// The stored form of a worker that serves certain jobs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CertainJobs {
    Job(String),
    Batch(String),
}

fn served_to_json(served: &ServedJobs) -> Option<String> {
    match served {
        ServedJobs::All => None,
        ServedJobs::InOrder(queues) => to_json(&queues.iter().map(QueueName::as_str).collect::<Vec<_>>()),
        ServedJobs::Batch(name) => Some(certain_to_json(&CertainJobs::Batch(name.to_string()))),
        ServedJobs::Job(job) => Some(certain_to_json(&CertainJobs::Job(job.to_string()))),
    }
}

fn certain_to_json(jobs: &CertainJobs) -> String {
    serde_json::to_string(jobs).expect("a name serializes to JSON")
}

pub(crate) fn served_from_json(json: Option<&str>) -> Result<ServedJobs> {
    let Some(json) = json else {
        return Ok(ServedJobs::All);
    };
    if json.starts_with('{') {
        let jobs: CertainJobs = serde_json::from_str(json).map_err(|error| malformed("worker", error))?;
        return match jobs {
            CertainJobs::Job(id) => id.parse().map(ServedJobs::Job).map_err(|error| malformed("job", error)),
            CertainJobs::Batch(name) => {
                name.parse().map(ServedJobs::Batch).map_err(|error| malformed("batch", error))
            }
        };
    }
    let names: Result<Vec<QueueName>, _> = strings(Some(json))?.iter().map(|name| name.parse()).collect();
    Ok(ServedJobs::InOrder(names.map_err(|error| malformed("queue", error))?))
}
