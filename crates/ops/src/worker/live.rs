//! Which workers are alive.
//!
//! A row in the store only says that a worker registered and did not deregister. This module decides, for display,
//! whether its process still exists. ([`sys::host::reach`] decides what a reaper may do about a worker.)

use std::path::PathBuf;

use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{Store, StoreError, Worker, WorkerState};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::Role;
use sys::host;
use sys::host::Observer;
use sys::process;

/// Whether a worker that did not deregister is still alive. A live worker holds a file lock, which is visible from any
/// container. If its lock file cannot be found, the worker counts as alive if its last heartbeat is after `alive_since`.
pub fn is_alive(worker: &Worker, alive_since: impl FnOnce() -> Timestamp) -> bool {
    let (folder, name) = (&worker.folder, worker.id.as_str());
    if host::finds_lock_of(&worker.origin, folder, name) {
        // If the lock cannot be checked, trust the row.
        liveness_lock::is_held(folder, name, Role::Worker).unwrap_or(true)
    } else {
        worker.last_heartbeat > alive_since()
    }
}

/// The live workers that have not stopped.
pub fn live_workers(store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
    // `enqueue` calls this every time, so try the cheaper query first.
    if !store.has_worker()? {
        return Ok(Vec::new());
    }
    Ok(live_and_dead_workers(store)?.0)
}

/// The workers that have not deregistered, partitioned into live and dead ones.
pub fn live_and_dead_workers(store: &dyn Store) -> Result<(Vec<Worker>, Vec<Worker>), StoreError> {
    let workers = store.workers()?;
    let alive_since = || lease_cutoff(store).unwrap_or(Timestamp::EPOCH);
    Ok(workers.into_iter().partition(|worker| is_alive(worker, alive_since)))
}

fn lease_cutoff(store: &dyn Store) -> Result<Timestamp, StoreError> {
    Ok(store.now()?.saturating_sub(in_force(store)?.lease))
}

/// The program that a worker runs although its file was replaced; `None` if it runs the current one, or if this process
/// cannot know.
pub fn replaced_program(worker: &Worker) -> Option<PathBuf> {
    let observer = Observer::here().ok()?;
    observer.sees_processes_of(&worker.origin).then(|| process::replaced_program(worker.pid))?
}

/// The slots of those of these workers that do not drain.
pub fn slots_for_new_jobs(workers: &[Worker]) -> u32 {
    let running = workers.iter().filter(|worker| worker.state == WorkerState::Running);
    running.map(|worker| worker.concurrency).sum()
}

/// Whether one of these workers takes jobs of this queue.
pub fn is_served(queue: &QueueName, workers: &[Worker]) -> bool {
    workers.iter().any(|worker| worker.served.has_queue(queue))
}

/// Whether any of these workers claims new jobs. A worker that was started for certain jobs does not.
pub fn any_takes_new_jobs(workers: &[Worker]) -> bool {
    workers.iter().any(|worker| worker.served.takes_new_jobs())
}

/// Why none of these live workers starts new jobs; `None` if one of them does, or if one was started for certain jobs.
pub fn why_no_job_starts(workers: &[Worker]) -> Option<&'static str> {
    if workers.is_empty() {
        return Some("no worker is running");
    }
    let is_draining = |worker: &&Worker| worker.state != WorkerState::Running;
    let (draining, running): (Vec<&Worker>, Vec<&Worker>) = workers.iter().partition(is_draining);
    let is_any = !draining.is_empty() && !running.iter().any(|worker| worker.served.takes_new_jobs());
    is_any.then_some("all workers are draining")
}
