//! Watching a queue: status, throughput, running jobs and the next retries.

use std::path::Path;
use std::time::Duration;

use super::throughput::{AttemptRate, Throughput};
use super::{Status, status};
use crate::OpError;
use crate::metrics::recent::{Recent, recent};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::clock::TimeFormat;
use domain::values::timestamp::Timestamp;
use store::{JobFilter, Page, Phase, Store, StoreError, Worker};

/// How many running jobs a snapshot contains at most.
const MAX_RUNNING: usize = 1_000;
/// If more jobs than this wait for a retry, the next retries are not listed.
const MAX_RETRIES: usize = 200;
/// How many of the next retries a snapshot contains.
const NEXT_RETRIES: usize = 5;
/// What counts as recent for the rate of attempts.
const RECENT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Watch<'s> {
    store: &'s dyn Store,
    home: &'s Path,
    format: TimeFormat,
    throughput: Throughput,
}

/// The queue at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub at: Timestamp,
    pub status: Status,
    /// Since the last snapshot; `None` in the first.
    pub latest: Option<AttemptRate>,
    /// Over the last seconds, or since the first snapshot.
    pub recent: Option<AttemptRate>,
    /// Over the last minute, or since the first snapshot.
    pub minute: Option<AttemptRate>,
    /// What the store has counted.
    pub hour: Recent,
    /// By worker, then longest-running first.
    pub running: Vec<Job>,
    /// Soonest first.
    pub retries: Vec<Job>,
}

impl<'s> Watch<'s> {
    pub fn new(store: &'s dyn Store, home: &'s Path, format: TimeFormat) -> Self {
        Self { store, home, format, throughput: Throughput::default() }
    }

    /// Takes a snapshot. `elapsed` is the time since watching began.
    pub fn snapshot(&mut self, elapsed: Duration) -> Result<Snapshot, OpError> {
        let status = status(self.store, self.home, &self.format)?;
        self.throughput.take(elapsed, &status.queues);
        Ok(Snapshot {
            at: self.store.now()?,
            latest: self.throughput.since_last(),
            recent: self.throughput.over(RECENT),
            minute: self.throughput.last_minute(),
            hour: recent(self.store, None)?,
            running: self.running(&status.workers)?,
            retries: self.retries(&status)?,
            status,
        })
    }

    fn running(&self, workers: &[Worker]) -> Result<Vec<Job>, StoreError> {
        let mut jobs = self.in_state(StateName::Processing, MAX_RUNNING)?;
        jobs.sort_by_cached_key(|job| {
            let lease = job.life.state.lease()?;
            Some((workers.iter().position(|worker| worker.id == lease.worker), lease.started_at))
        });
        Ok(jobs)
    }

    fn retries(&self, status: &Status) -> Result<Vec<Job>, StoreError> {
        if status.jobs.get(&StateName::Failed).is_some_and(|count| *count > MAX_RETRIES as u64) {
            return Ok(Vec::new());
        }
        let mut jobs = self.in_state(StateName::Failed, MAX_RETRIES)?;
        jobs.sort_by_key(|job| job.life.due_at);
        jobs.truncate(NEXT_RETRIES);
        Ok(jobs)
    }

    fn in_state(&self, state: StateName, limit: usize) -> Result<Vec<Job>, StoreError> {
        let filter = JobFilter::in_phase(Phase::State(state));
        self.store.list(&filter, &Page { limit, after: None })
    }
}
