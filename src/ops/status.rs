//! How things stand: counts, queues, workers, and what is wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::OpError;
use super::alive::{is_any_for_all_comers, live_workers};

use crate::domain::life::StateName;
use crate::domain::settings::{Durability, Settings};
use crate::domain::span::format_span;
use crate::domain::timestamp::Timestamp;
use crate::store::settings::in_force;
use crate::store::{Queue, Store, Worker};
use crate::sys::disk;

/// Less free space than this is a problem.
pub(super) const LOW_SPACE_BYTES: u64 = 64 << 20;
/// A worker that missed more heartbeats than this is silent.
const MISSED_HEARTBEATS: u32 = 3;
/// What to say where no worker is running.
pub const HOW_TO_START_A_WORKER: &str = "start one with `queuectl worker start`";

#[derive(Clone, Debug)]
pub struct Status {
    pub jobs: BTreeMap<StateName, u64>,
    pub queues: Vec<Queue>,
    pub workers: Vec<Worker>,
    pub problems: Vec<Problem>,
}

/// Something that a person should know about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    QueuePaused { queue: String, by: String, reason: Option<String>, waiting: u64 },
    NoWorker { waiting: u64 },
    SilentWorker { worker: String, silent_for: Duration },
    DurabilityLowered,
    LowSpace { free_bytes: u64 },
}

impl Problem {
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueuePaused { .. } => "queue_paused",
            Self::NoWorker { .. } => "no_worker",
            Self::SilentWorker { .. } => "silent_worker",
            Self::DurabilityLowered => "durability_lowered",
            Self::LowSpace { .. } => "low_space",
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::QueuePaused { queue, by, reason, waiting } => {
                write!(out, "queue {queue} is paused by {by}")?;
                if let Some(reason) = reason {
                    write!(out, " ({reason})")?;
                }
                write!(out, ", {waiting} jobs wait")
            }
            Self::NoWorker { waiting } => {
                let (jobs, wait) = if *waiting == 1 { ("job", "waits") } else { ("jobs", "wait") };
                write!(out, "{waiting} {jobs} {wait} and no worker is running; {HOW_TO_START_A_WORKER}")
            }
            Self::SilentWorker { worker, silent_for } => {
                let seconds = Duration::from_secs(silent_for.as_secs());
                write!(out, "worker {worker} was last heard from {} ago", format_span(seconds))?;
                out.write_str("; it hangs, or cannot reach the store")
            }
            Self::DurabilityLowered => {
                out.write_str("durability is normal: a power cut can lose the last moments")
            }
            Self::LowSpace { free_bytes } => {
                write!(out, "the disk is nearly full: {} MiB are left", free_bytes >> 20)
            }
        }
    }
}

pub fn status(store: &dyn Store, home: &Path) -> Result<Status, OpError> {
    let queues = store.queues()?;
    let workers = live_workers(store)?;
    let settings = in_force(store)?;
    let now = store.now()?;
    let mut jobs: BTreeMap<StateName, u64> = StateName::ALL.into_iter().map(|state| (state, 0)).collect();
    for (state, count) in queues.iter().flat_map(|queue| &queue.counts) {
        *jobs.entry(*state).or_default() += count;
    }
    let mut problems: Vec<Problem> = queues.iter().filter_map(paused).collect();
    // A worker for one job has that one.
    let waiting = (waiting(&jobs) + left_behind(&jobs)).saturating_sub(workers.len() as u64);
    if !is_any_for_all_comers(&workers) && waiting > 0 {
        problems.push(Problem::NoWorker { waiting });
    }
    problems.extend(workers.iter().filter_map(|worker| silent(worker, &settings, now)));
    if settings.durability != Durability::Full {
        problems.push(Problem::DurabilityLowered);
    }
    if let Ok(free_bytes) = disk::free_bytes(home)
        && free_bytes < LOW_SPACE_BYTES
    {
        problems.push(Problem::LowSpace { free_bytes });
    }
    Ok(Status { jobs, queues, workers, problems })
}

fn paused(queue: &Queue) -> Option<Problem> {
    let (_, pause) = queue.paused.as_ref()?;
    Some(Problem::QueuePaused {
        queue: queue.name.to_string(),
        by: pause.by.clone(),
        reason: pause.reason.clone(),
        waiting: waiting(&queue.counts),
    })
}

fn silent(worker: &Worker, settings: &Settings, now: Timestamp) -> Option<Problem> {
    let silent_for = now.since(worker.last_heartbeat);
    (silent_for > settings.heartbeat_interval * MISSED_HEARTBEATS)
        .then(|| Problem::SilentWorker { worker: worker.id.to_string(), silent_for })
}

/// What would be running if there were a worker: where there is none, its own died with its guardian, and it waits for
/// the next one to notice.
fn left_behind(counts: &BTreeMap<StateName, u64>) -> u64 {
    counts.get(&StateName::Processing).copied().unwrap_or(0)
}

fn waiting(counts: &BTreeMap<StateName, u64>) -> u64 {
    [StateName::Pending, StateName::Failed].iter().filter_map(|state| counts.get(state)).sum()
}
