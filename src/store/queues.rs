//! Queues: what is in them, and what holds them back.

use std::collections::BTreeMap;

use super::StoreError;
use crate::domain::life::StateName;
use crate::domain::name::QueueName;
use crate::domain::timestamp::Timestamp;

pub trait Queues {
    /// All queues with the number of their jobs in each state.
    fn queues(&self) -> Result<Vec<Queue>, StoreError>;
    /// Holds a queue back, or lets it go on when `pause` is `None`. A queue that is not there yet is made.
    fn hold(&self, queue: &QueueName, pause: Option<&Pause>) -> Result<(), StoreError>;
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
}
