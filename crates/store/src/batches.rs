//! Batches: jobs that were enqueued together under a name.
//!
//! A batch exists from its first job to its last: enqueuing its first job creates it, removing its last job deletes it.

use std::collections::BTreeMap;

use crate::rows::tables::batches;
use crate::rows::views::eta_facts;
use crate::{Result, Store};
use domain::batch::eta::EtaFacts;
use domain::job::life::StateName;
use domain::values::name::{BatchName, QueueName};
use domain::values::timestamp::Timestamp;

impl dyn Store + '_ {
    /// The newest batches with the number of their jobs in each state.
    pub fn batches(&self, limit: usize) -> Result<Vec<Batch>> {
        self.view(|tx| batches::list(tx, limit))
    }

    pub fn batch(&self, name: &BatchName) -> Result<Option<Batch>> {
        self.view(|tx| batches::find(tx, name))
    }

    /// The facts from which the remaining time of a batch is estimated. The caller fills in the slots of its workers.
    pub fn eta_facts(&self, name: &BatchName) -> Result<EtaFacts> {
        self.view(|tx| eta_facts::eta_facts(tx, name))
    }

    /// The same for any jobs, counted by queue.
    pub fn eta_facts_by_queue(&self, unfinished: &BTreeMap<QueueName, UnfinishedCount>) -> Result<EtaFacts> {
        self.view(|tx| eta_facts::eta_facts_by_queue(tx, unfinished))
    }
}

/// How many jobs of a queue are unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnfinishedCount {
    pub unfinished: u64,
    /// How many of them have not started.
    pub waiting: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub name: BatchName,
    pub created_at: Timestamp,
    /// When its last job finished; `None` while one is unfinished.
    pub finished_at: Option<Timestamp>,
    /// States without a job are left out.
    pub counts: BTreeMap<StateName, u64>,
}

impl Batch {
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Completed, dead or cancelled.
    pub fn finished(&self) -> u64 {
        self.counts.iter().filter(|(state, _)| state.is_finished()).map(|(_, count)| count).sum()
    }

    /// Finished, but not completed.
    pub fn unsuccessful(&self) -> u64 {
        self.finished() - self.counts.get(&StateName::Completed).copied().unwrap_or(0)
    }
}
