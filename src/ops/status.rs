//! How things stand: counts, queues, workers, and what is wrong.

use std::collections::BTreeMap;
use std::path::Path;

use crate::domain::life::StateName;
use crate::domain::settings::SettingKey;
use crate::store::{Queue, Store, StoreError, Worker};
use crate::sys::disk;

/// Less free space than this is a problem.
const LOW_SPACE_BYTES: u64 = 64 << 20;

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
    DurabilityLowered,
    LowSpace { free_bytes: u64 },
}

impl Problem {
    pub fn code(&self) -> &'static str {
        match self {
            Self::QueuePaused { .. } => "queue_paused",
            Self::NoWorker { .. } => "no_worker",
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
            Self::NoWorker { waiting: 1 } => out.write_str("1 job waits and no worker is running"),
            Self::NoWorker { waiting } => write!(out, "{waiting} jobs wait and no worker is running"),
            Self::DurabilityLowered => {
                out.write_str("durability is normal: a power cut can lose the last moments")
            }
            Self::LowSpace { free_bytes } => {
                write!(out, "the disk is nearly full: {} MiB are left", free_bytes >> 20)
            }
        }
    }
}

pub fn status(store: &dyn Store, home: &Path) -> Result<Status, StoreError> {
    let queues = store.queues()?;
    let workers = store.workers()?;
    let mut jobs: BTreeMap<StateName, u64> = StateName::ALL.into_iter().map(|state| (state, 0)).collect();
    for (state, count) in queues.iter().flat_map(|queue| &queue.counts) {
        *jobs.entry(*state).or_default() += count;
    }
    let mut problems: Vec<Problem> = queues.iter().filter_map(paused).collect();
    let waiting = waiting(&jobs);
    if workers.is_empty() && waiting > 0 {
        problems.push(Problem::NoWorker { waiting });
    }
    if store.settings()?.get(&SettingKey::Durability).is_some_and(|value| value != "full") {
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

fn waiting(counts: &BTreeMap<StateName, u64>) -> u64 {
    [StateName::Pending, StateName::Failed].iter().filter_map(|state| counts.get(state)).sum()
}
