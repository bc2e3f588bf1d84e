//! Batches: jobs that were enqueued together under a name.
//!
//! A batch exists from its first job to its last: enqueuing its first job creates it, removing its last job deletes it.

use std::collections::BTreeMap;

use super::StoreError;
use domain::batch::eta::EtaFacts;
use domain::job::life::StateName;
use domain::values::name::BatchName;
use domain::values::timestamp::Timestamp;

pub trait Batches {
    /// The newest batches with the number of their jobs in each state.
    fn batches(&self, limit: usize) -> Result<Vec<Batch>, StoreError>;
    fn batch(&self, name: &BatchName) -> Result<Option<Batch>, StoreError>;
    /// The facts from which the remaining time of a batch is estimated. The caller fills in the slots of its workers.
    fn eta_facts(&self, name: &BatchName) -> Result<EtaFacts, StoreError>;
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
