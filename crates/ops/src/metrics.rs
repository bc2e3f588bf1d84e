//! What happens in the queues, as numbers: everything since the store counts for monitoring, and the last hour for people.
//!
//! All of it is read from the store when it is asked for, so one process can answer for all workers.

pub mod exposition;
pub mod history;
pub mod output;
pub mod prometheus;
pub mod recent;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::OpError;
use super::error::Named;
use super::home::location::{Location, StoreAddress};
use super::home::open;
use super::status::{Status, is_silent, status};
use domain::job::life::StateName;
use domain::log;
use domain::schedule::Schedule;
use domain::values::clock::TimeFormat;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use store::settings::in_force;
use store::{Hook, QueueMetrics, Store, Worker, WorkerState};
use sys::fs::disk;

/// How many schedules and hooks are reported; their names become labels.
const MAX_SCHEDULES: usize = 200;
const MAX_HOOKS: usize = 50;

/// Everything that is reported to a monitoring system.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub now: Timestamp,
    pub store: open::StoreKind,
    /// By name, with everything that happened since the store counts.
    pub queues: Vec<QueueMetrics>,
    pub workers: WorkerCounts,
    pub schedules: Vec<ScheduleTimes>,
    pub hooks: Vec<Hook>,
    /// The codes of the problems that `status` reports.
    pub problems: BTreeSet<&'static str>,
    pub files: FileSizes,
}

/// Workers by what they do, and their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    pub running: u64,
    pub draining: u64,
    /// Without a heartbeat for a long time, whatever else they do.
    pub silent: u64,
    pub busy_slots: u64,
    /// Of workers that claim jobs.
    pub free_slots: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleTimes {
    pub schedule: Schedule,
    /// When it last enqueued its job.
    pub last_run_at: Option<Timestamp>,
    /// When the last of its latest runs that completed did so.
    pub last_success_at: Option<Timestamp>,
}

/// In bytes; `None` where it cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    pub database: Option<u64>,
    pub write_ahead_log: Option<u64>,
    pub logs: Option<u64>,
    pub free: Option<u64>,
}

/// Reads everything; with `only`, of the queues only this one.
pub fn measure(store: &dyn Store, location: &Location, only: Option<&QueueName>) -> Result<Metrics, OpError> {
    let Status { workers, problems, .. } = status(store, &location.home, &TimeFormat::Full)?;
    let now = store.now()?;
    Ok(Metrics {
        now,
        store: open::kind(&location.store),
        queues: only_queue(store.total_metrics()?, only)?,
        workers: count_workers(store, &workers, now)?,
        schedules: schedules(store)?,
        hooks: store.hooks()?.into_iter().take(MAX_HOOKS).collect(),
        problems: problems.iter().map(|problem| problem.code).collect(),
        files: file_sizes(location),
    })
}

/// These queues, or the one that the caller named, which must exist.
fn only_queue(queues: Vec<QueueMetrics>, only: Option<&QueueName>) -> Result<Vec<QueueMetrics>, OpError> {
    let Some(name) = only else {
        return Ok(queues);
    };
    let found = queues.iter().find(|queue| queue.queue.name == *name).cloned();
    let known = queues.iter().map(|queue| queue.queue.name.as_str());
    found.map(|queue| vec![queue]).ok_or_else(|| OpError::no_such(Named::Queue, name.as_str(), known))
}

fn count_workers(store: &dyn Store, workers: &[Worker], now: Timestamp) -> Result<WorkerCounts, OpError> {
    let settings = in_force(store)?;
    let mut counts = WorkerCounts::default();
    for worker in workers {
        counts.busy_slots += u64::from(worker.running);
        if is_silent(worker, &settings, now) {
            counts.silent += 1;
            continue;
        }
        match worker.state {
            WorkerState::Running => {
                counts.running += 1;
                counts.free_slots += u64::from(worker.concurrency.saturating_sub(worker.running));
            }
            WorkerState::Draining | WorkerState::Stopped => counts.draining += 1,
        }
    }
    Ok(counts)
}

fn schedules(store: &dyn Store) -> Result<Vec<ScheduleTimes>, OpError> {
    let mut all = Vec::new();
    for (schedule, latest) in store.schedules()?.into_iter().take(MAX_SCHEDULES) {
        let runs = store.schedule(&schedule.name)?.map_or(Vec::new(), |(_, runs)| runs);
        let success = runs.iter().filter(|run| run.state == StateName::Completed);
        all.push(ScheduleTimes {
            last_run_at: latest.map(|run| run.created_at),
            last_success_at: success.filter_map(|run| run.finished_at).max(),
            schedule,
        });
    }
    Ok(all)
}

fn file_sizes(location: &Location) -> FileSizes {
    let size = |path: &Path| path.metadata().ok().map(|meta| meta.len());
    let (database, write_ahead_log) = match &location.store {
        StoreAddress::Sqlite(database) => {
            let mut write_ahead_log = database.clone().into_os_string();
            write_ahead_log.push("-wal");
            (size(database), size(&PathBuf::from(write_ahead_log)))
        }
        // Its files belong to the server.
        StoreAddress::Postgres(_) => (None, None),
    };
    FileSizes {
        database,
        write_ahead_log,
        logs: folder_bytes(&location.home.join(log::FOLDER)),
        free: disk::free_bytes(&location.home).ok(),
    }
}

/// A file that is deleted meanwhile counts for nothing.
fn folder_bytes(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum())
}
