//! Waiting until jobs are finished.
//!
//! Nothing here sleeps: [`Wait::poll`] returns the jobs that ended since the last poll, and the caller decides how long to
//! wait before the next.

use std::collections::{BTreeMap, VecDeque};

use super::dependency_failure::failed_dependency;
use crate::OpError;
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName};
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError, UnfinishedCount};

/// How many jobs one poll reads, so that waiting for thousands of jobs costs no more than waiting for some.
const JOBS_PER_POLL: usize = 500;

/// The jobs to wait for.
#[derive(Debug)]
pub struct Wait {
    unfinished: VecDeque<UnfinishedJob>,
}

/// A job as of its last poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedJob {
    pub id: JobId,
    /// `None` before the first poll.
    pub state: Option<StateName>,
    /// When its current attempt started, if it is running.
    pub running_since: Option<Timestamp>,
    /// When it becomes due, if it is not running.
    pub due_at: Option<Timestamp>,
    /// `None` before the first poll.
    pub queue: Option<QueueName>,
}

/// Why the wait for a job ended.
#[derive(Debug)]
pub enum WaitEnd {
    /// It is completed, dead or cancelled.
    Finished(Box<Job>),
    /// The job did not exist at the first poll.
    Unknown(JobId),
    /// The job was removed during the wait.
    Removed(JobId),
}

impl Wait {
    pub fn new(ids: impl IntoIterator<Item = JobId>) -> Self {
        let unseen = |id| UnfinishedJob { id, state: None, running_since: None, due_at: None, queue: None };
        Self { unfinished: ids.into_iter().map(unseen).collect() }
    }

    pub fn is_over(&self) -> bool {
        self.unfinished.is_empty()
    }

    pub fn unfinished(&self) -> impl ExactSizeIterator<Item = &UnfinishedJob> {
        self.unfinished.iter()
    }

    /// How many jobs are unfinished, by queue.
    pub fn by_queue(&self) -> BTreeMap<QueueName, UnfinishedCount> {
        let mut counts: BTreeMap<QueueName, UnfinishedCount> = BTreeMap::new();
        for job in &self.unfinished {
            if let Some(queue) = &job.queue {
                let count = counts.entry(queue.clone()).or_default();
                count.unfinished += 1;
                count.waiting += u64::from(job.running_since.is_none());
            }
        }
        counts
    }

    /// Polls every unfinished job.
    pub fn poll_all(&mut self, store: &dyn Store) -> Result<Vec<WaitEnd>, StoreError> {
        let mut ended = Vec::new();
        let mut left = self.unfinished.len();
        while left > 0 {
            let count = JOBS_PER_POLL.min(left);
            ended.extend(self.poll_next(count, store)?);
            left -= count;
        }
        Ok(ended)
    }

    /// Polls up to `JOBS_PER_POLL` unfinished jobs; successive calls rotate through them.
    pub fn poll(&mut self, store: &dyn Store) -> Result<Vec<WaitEnd>, StoreError> {
        self.poll_next(JOBS_PER_POLL.min(self.unfinished.len()), store)
    }

    fn poll_next(&mut self, count: usize, store: &dyn Store) -> Result<Vec<WaitEnd>, StoreError> {
        // Read all jobs before draining the queue: an error must not lose one.
        let found = self.unfinished.range(..count).map(|last| store.find(&last.id));
        let found: Vec<Option<Job>> = found.collect::<Result<_, _>>()?;
        let polled: Vec<UnfinishedJob> = self.unfinished.drain(..count).collect();
        let mut ended = Vec::new();
        for (last, found) in polled.into_iter().zip(found) {
            match progress(last, found) {
                Ok(unfinished) => self.unfinished.push_back(unfinished),
                Err(end) => ended.push(end),
            }
        }
        Ok(ended)
    }
}

fn progress(last: UnfinishedJob, found: Option<Job>) -> Result<UnfinishedJob, WaitEnd> {
    let Some(job) = found else {
        return Err(if last.state.is_none() { WaitEnd::Unknown(last.id) } else { WaitEnd::Removed(last.id) });
    };
    let state = &job.life.state;
    if state.name().is_finished() {
        return Err(WaitEnd::Finished(Box::new(job)));
    }
    let running_since = state.lease().map(|lease| lease.started_at);
    let due_at = running_since.is_none().then_some(job.life.due_at);
    let (state, queue) = (Some(state.name()), Some(job.queue));
    Ok(UnfinishedJob { id: last.id, state, running_since, due_at, queue })
}

impl WaitEnd {
    /// The job if it completed; otherwise the error to report.
    pub fn verdict(&self, store: &dyn Store) -> Result<&Job, OpError> {
        match self {
            Self::Finished(job) => succeeded(store, job),
            Self::Unknown(id) => Err(OpError::NoSuchJob(id.clone())),
            Self::Removed(id) => Err(OpError::Removed(id.clone())),
        }
    }
}

fn succeeded<'j>(store: &dyn Store, job: &'j Job) -> Result<&'j Job, OpError> {
    let state = &job.life.state;
    let Some(reason) = state.reason() else {
        return Ok(job);
    };
    let mut why = reason.replace('_', " ");
    // The error of the last attempt is not the reason for a cancellation.
    if let (StateName::Dead, Some(error)) = (state.name(), &job.latest.error) {
        why = format!("{why}: {error}");
    }
    // If the dependency cannot be found, the reason alone is reported.
    let dependency = failed_dependency(store, job).unwrap_or_default();
    let why = dependency.map_or_else(|| format!("({why})"), |dependency| format!("because {dependency}"));
    Err(OpError::Unsuccessful { job: job.full_handle(), state: state.name(), why })
}
