//! Queues: what is in them, and what holds them back.

use std::collections::BTreeMap;

use super::StoreError;
use domain::job::life::StateName;
use domain::job::limits::Limits;
use domain::job::retry_rules::{ExitCodes, RetryRules};
use domain::queue::rate::Rate;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;

/// A queue that is named and not there yet is made.
pub trait Queues {
    /// All queues with the number of their jobs in each state, by name.
    fn queues(&self) -> Result<Vec<Queue>, StoreError>;
    /// Holds a queue back: nothing of it starts any more.
    fn pause_queue(&self, queue: &QueueName, pause: &Pause) -> Result<(), StoreError>;
    /// Lets a queue go on.
    fn resume_queue(&self, queue: &QueueName, by: &str) -> Result<(), StoreError>;
    /// Changes what is set for a queue.
    fn set_queue(&self, queue: &QueueName, update: &QueueUpdate, by: &str) -> Result<(), StoreError>;
}

/// Why a queue is held back, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub by: String,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub name: QueueName,
    /// Since when it is held back, and why.
    pub paused: Option<(Timestamp, Pause)>,
    /// States without a job are left out.
    pub counts: BTreeMap<StateName, u64>,
    /// How many of its jobs run at once at most, with all workers together.
    pub concurrency: Option<u32>,
    /// How many of its jobs may start in how much time.
    pub rate: Option<Rate>,
    /// When its rate lets the next job start, if that is later than now.
    pub next_start_at: Option<Timestamp>,
    /// For jobs that set none.
    pub limits: Limits,
    pub retry: RetryRules,
}

impl Queue {
    /// One for which nothing is set.
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

    /// Whether as many of its jobs run as may.
    pub fn is_full(&self) -> bool {
        self.concurrency.is_some_and(|limit| self.running() >= limit.into())
    }
}

/// What is to be set for a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueUpdate {
    pub concurrency: Update<u32>,
    pub rate: Update<Rate>,
    pub limits: Update<Limits>,
    pub retry_on: Update<ExitCodes>,
    pub no_retry_on: Update<ExitCodes>,
}

/// What is to become of one value.
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
    /// `name value`, for whoever reads what was changed.
    pub fn describe(&self, name: &str) -> Option<String> {
        match self {
            Self::Keep => None,
            Self::Clear => Some(format!("{name} none")),
            Self::Set(value) => Some(format!("{name} {value}")),
        }
    }
}
