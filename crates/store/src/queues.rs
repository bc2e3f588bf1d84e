//! Queues: the number of their jobs, what happens in them, and what limits or pauses them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::rows::tables::{duties, minutes, queues};
use crate::rows::views::{history, metrics};
use crate::{Duty, Result, Store};
pub use domain::explain::wait_reason::Pause;
use domain::explain::wait_reason::QueueLimits;
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::job::retry_rules::{ExitCodes, RetryRules};
use domain::metrics::activity::Activity;
use domain::metrics::history::Timeline;
use domain::queue::rate::Rate;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// Naming a queue that does not exist yet creates it.
impl dyn Store + '_ {
    /// All queues with the number of their jobs in each state, by name.
    pub fn queues(&self) -> Result<Vec<Queue>> {
        self.view(queues::list)
    }

    /// The number of jobs in all queues.
    pub fn count_jobs(&self) -> Result<u64> {
        Ok(self.queues()?.iter().flat_map(|queue| queue.counts.values()).sum())
    }

    /// Pauses a queue: none of its jobs is claimed any more.
    pub fn pause_queue(&self, queue: &QueueName, pause: &Pause) -> Result<()> {
        self.transact("pause_queue", |tx| queues::pause(tx, queue, pause))
    }

    /// Resumes a paused queue.
    pub fn resume_queue(&self, queue: &QueueName, by: &str) -> Result<()> {
        self.transact("resume_queue", |tx| queues::resume(tx, queue, by))
    }

    /// Changes the settings of a queue.
    pub fn set_queue(&self, queue: &QueueName, update: &QueueUpdate, by: &str) -> Result<()> {
        self.transact("set_queue", |tx| queues::set(tx, queue, update, by))
    }

    /// Removes a queue without jobs, with its settings.
    pub fn remove_queue(&self, queue: &QueueName, by: &str) -> Result<QueueRemoval> {
        self.transact("remove_queue", |tx| queues::remove(tx, queue, by))
    }

    /// Every queue by name, with everything that happened in it since the store counts.
    pub fn total_metrics(&self) -> Result<Vec<QueueMetrics>> {
        self.view(|tx| metrics::total(tx, self.history_cache()))
    }

    /// Every queue by name, with what happened in it since the beginning of the minute of this time. It must be within the
    /// time for which the store keeps single minutes.
    pub fn recent_metrics(&self, since: Timestamp) -> Result<Vec<QueueMetrics>> {
        self.view(|tx| metrics::since(tx, since))
    }

    /// What happened in one queue, or in all, over a time that ends now; `None` if there is no such queue.
    pub fn history(&self, range: Duration, queue: Option<&QueueName>) -> Result<Option<Timeline>> {
        self.view(|tx| match queue.map(|name| queues::find_id(tx, name)).transpose()? {
            Some(None) => Ok(None),
            queue_id => history::history(tx, self.history_cache(), range, queue_id.flatten()).map(Some),
        })
    }

    /// How many attempts ended in each of the last hours, queue by queue. A queue in which none ended is left out.
    pub fn ended_per_hour(&self, hours: usize) -> Result<BTreeMap<QueueName, Vec<u64>>> {
        self.view(|tx| history::ended_per_hour(tx, hours))
    }

    /// Samples how many jobs the queues have, once a minute; `false` if this minute has its sample.
    pub fn sample_depth(&self) -> Result<bool> {
        // Most callers come too early; they need not wait for other writers.
        if !self.view(|tx| duties::is_due(tx, Duty::Sample))? {
            return Ok(false);
        }
        self.transact("sample", |tx| minutes::sample(tx))
    }

    /// Why a queue is paused; `None` if it is not, or does not exist. `enqueue` asks this each time.
    pub fn pause_of(&self, queue: &QueueName) -> Result<Option<Pause>> {
        self.view(|tx| queues::pause_of(tx, queue))
    }
}

/// What happens in a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueMetrics {
    pub queue: Queue,
    /// How often a job entered a state since the store counts; `pending` by being enqueued, and `processing` not at all.
    pub entered: BTreeMap<StateName, u64>,
    pub activity: Activity,
    /// Jobs that were enqueued in the time of the activity. Samples are taken once a minute, so it is an estimate for a
    /// part of the time.
    pub enqueued: u64,
    /// When the job became due that has been ready for the longest time.
    pub oldest_ready_at: Option<Timestamp>,
    /// When the oldest running attempt started.
    pub oldest_running_at: Option<Timestamp>,
}

/// The result of removing a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRemoval {
    Removed,
    Missing,
    /// It has this many jobs, in any state.
    InUse {
        jobs: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub name: QueueName,
    /// When and why it was paused.
    pub paused: Option<(Timestamp, Pause)>,
    /// States without a job are left out.
    pub counts: BTreeMap<StateName, u64>,
    /// How many of its jobs run at once at most, over all workers.
    pub concurrency: Option<u32>,
    /// How many of its jobs may start per period.
    pub rate: Option<Rate>,
    /// When its rate allows the next start, if that is later than now.
    pub next_start_at: Option<Timestamp>,
    /// Defaults for jobs that set none.
    pub limits: Limits,
    pub retry: RetryRules,
}

impl Queue {
    /// A queue with default settings.
    pub fn new(name: QueueName, counts: BTreeMap<StateName, u64>) -> Self {
        Self {
            name,
            paused: None,
            counts,
            concurrency: None,
            rate: None,
            next_start_at: None,
            limits: Limits::default(),
            retry: RetryRules::default(),
        }
    }

    pub fn running(&self) -> u64 {
        self.counts.get(&StateName::Processing).copied().unwrap_or(0)
    }

    pub fn limits(&self) -> QueueLimits {
        QueueLimits {
            paused: self.paused.clone(),
            running: self.running(),
            concurrency: self.concurrency,
            next_start_at: self.next_start_at,
        }
    }

    /// Whether its concurrency limit is reached.
    pub fn is_full(&self) -> bool {
        self.concurrency.is_some_and(|limit| self.running() >= limit.into())
    }
}

/// Changes to the settings of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueUpdate {
    pub concurrency: Update<u32>,
    pub rate: Update<Rate>,
    pub limits: Update<Limits>,
    pub retry_on: Update<ExitCodes>,
    pub no_retry_on: Update<ExitCodes>,
}

/// The change of one setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Update<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T: Clone> Update<T> {
    pub fn apply(&self, current: Option<T>) -> Option<T> {
        match self {
            Self::Keep => current,
            Self::Clear => None,
            Self::Set(value) => Some(value.clone()),
        }
    }
}

impl<T: std::fmt::Display> Update<T> {
    /// `name value`, for the event log; `None` if nothing changes.
    pub fn describe(&self, name: &str) -> Option<String> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(format!("{name} none")),
            Self::Set(value) => Some(format!("{name} {value}")),
        }
    }
}
