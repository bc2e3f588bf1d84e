//! Calls from inside a job: which job calls, which jobs it must not wait for, and which job needs the slot that the
//! caller occupies while it waits.
//!
//! A job that waits for another job keeps its slot. If waiting jobs occupy all slots, the jobs they wait for could never
//! start. The caller therefore starts a worker for one such job at a time, which replaces the occupied slot. It also
//! holds a lock while it waits, so that other calls inside jobs do not wait for it to end.

use std::collections::{HashSet, VecDeque};

use super::wait_reason::{Waiting, lacks_free_slot, waiting};
use crate::OpError;
use domain::explain::wait_reason::WaitReason;
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName, WorkerId};
use store::{JobFilter, Page, Phase, Store, StoreError, Worker};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::WaitLock;
use sys::process::user;

/// Variables that a worker sets for each command; see `engine/attempt/variables.rs`.
const JOB_ID: &str = "QUEUECTL_JOB_ID";
const ATTEMPT: &str = "QUEUECTL_ATTEMPT";
const WORKER_ID: &str = "QUEUECTL_WORKER_ID";

/// How many jobs a walk over dependencies visits.
const MAX_JOBS_VISITED: usize = 10_000;
/// How many running jobs are checked for their workers.
const MAX_RUNNING_CHECKED: usize = 10_000;

/// The job that this process belongs to.
#[derive(Clone, Debug)]
pub struct CallingJob {
    pub job: Job,
    worker: WorkerId,
}

impl CallingJob {
    /// Reads the job from the environment and checks it against the lease in this store: the variables may be inherited
    /// from an earlier attempt or describe a job of another store.
    pub fn find(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        let Some((id, attempt, worker)) = from_environment() else {
            return Ok(None);
        };
        let job = store.find(&id)?.filter(|job| job.life.attempts == attempt && is_held_by(job, &worker));
        Ok(job.map(|job| Self { job, worker }))
    }

    /// Takes the lock that shows other calls that this job is waiting. If that fails, they may wait for this job, but
    /// nothing else breaks.
    pub fn mark_waiting(&self, store: &dyn Store) -> Result<Option<WaitLock>, StoreError> {
        let workers = store.workers()?;
        let own = workers.iter().find(|worker| worker.id == self.worker);
        Ok(own.and_then(|own| WaitLock::hold(&own.folder, own.id.as_str(), self.job.number).ok()))
    }

    /// The name recorded for a command from inside this job.
    pub fn actor(&self) -> String {
        format!("{} in job {}", user::name(), self.job.id)
    }

    /// Refuses to wait for jobs that cannot end before this one: itself, jobs that depend on it, and jobs of a queue whose
    /// only place it occupies.
    pub fn check_may_wait_for(
        &self,
        store: &dyn Store,
        ids: impl IntoIterator<Item = JobId>,
    ) -> Result<(), OpError> {
        let fills_queue = self.fills_its_queue(store)?;
        let mut jobs = DependencyWalk::from(store, ids);
        while let Some((asked, job)) = jobs.next()? {
            if job.id == self.job.id {
                let dependent = (asked != job.id).then_some(asked);
                return Err(OpError::WaitsForItself { job: job.id, dependent });
            }
            if fills_queue && job.queue == self.job.queue && job.life.state.name() != StateName::Processing {
                return Err(OpError::OnlySlotTaken { job: self.job.id.clone(), queue: job.queue });
            }
        }
        Ok(())
    }

    /// Whether this job can end after another job: false for itself and for jobs that depend on it.
    pub fn may_end_after(&self, store: &dyn Store, id: &JobId) -> Result<bool, OpError> {
        match self.check_may_wait_for(store, [id.clone()]) {
            Err(OpError::WaitsForItself { .. }) => Ok(false),
            Ok(()) | Err(OpError::OnlySlotTaken { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The same check for a job that is about to be enqueued into this queue.
    pub fn check_may_wait_in(&self, store: &dyn Store, queue: &QueueName) -> Result<(), OpError> {
        if *queue == self.job.queue && self.fills_its_queue(store)? {
            return Err(OpError::OnlySlotTaken { job: self.job.id.clone(), queue: queue.clone() });
        }
        Ok(())
    }

    /// The first job among these and their dependencies that waits because the queue of this job is full.
    pub fn find_blocked_by_full_queue(
        &self,
        store: &dyn Store,
        ids: impl IntoIterator<Item = JobId>,
    ) -> Result<Option<Job>, OpError> {
        let mut jobs = DependencyWalk::from(store, ids);
        while let Some((_, job)) = jobs.next()? {
            let is_full = |waiting: Waiting| matches!(waiting.reason, Some(WaitReason::FullQueue { .. }));
            if job.queue == self.job.queue && waiting(store, &job)?.is_some_and(is_full) {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    fn fills_its_queue(&self, store: &dyn Store) -> Result<bool, StoreError> {
        Ok(store.queues()?.iter().any(|queue| queue.name == self.job.queue && queue.concurrency == Some(1)))
    }
}

/// Whether this job, which runs in `worker`, holds the lock of a waiting job.
fn is_waiting(job: &Job, worker: &Worker) -> bool {
    liveness_lock::is_waiting(&worker.folder, worker.id.as_str(), job.number)
}

/// The workers among these that run only waiting jobs (the caller, which waits for the workers to end, and others), each
/// with these jobs. They would never end while the caller waits for them.
pub fn workers_blocked_by_waiting(
    store: &dyn Store,
    workers: &[Worker],
    caller: &JobId,
) -> Result<Vec<(WorkerId, Vec<String>)>, StoreError> {
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    let running = store.list(&running, &Page { limit: MAX_RUNNING_CHECKED, after: None })?;
    let unkillable = store.unkillable()?;
    // A stopping worker does not wait for an unkillable job.
    let is_left_behind =
        |job: &Job| unkillable.iter().any(|noted| noted.lease.job == job.id && noted.is_alive());
    let kept = workers.iter().filter_map(|worker| {
        let own: Vec<&Job> = running.iter().filter(|job| is_held_by(job, &worker.id)).collect();
        let waits = |job: &Job| job.id == *caller || is_left_behind(job) || is_waiting(job, worker);
        let all_wait = !own.is_empty() && own.iter().all(|job| waits(job));
        all_wait.then(|| (worker.id.clone(), own.iter().map(|job| job.handle()).collect()))
    });
    Ok(kept.collect())
}

/// The first job among these and their dependencies that could run if a worker had a free slot.
pub fn first_starved(
    store: &dyn Store,
    ids: impl IntoIterator<Item = JobId>,
    workers: &[Worker],
) -> Result<Option<Job>, OpError> {
    let mut jobs = DependencyWalk::from(store, ids);
    while let Some((_, job)) = jobs.next()? {
        if lacks_free_slot(&job, workers) && is_ready(store, &job)? {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Whether the job lacks nothing but a free slot.
pub fn is_ready(store: &dyn Store, job: &Job) -> Result<bool, OpError> {
    Ok(waiting(store, job)?.is_some_and(|waiting| waiting.reason.is_none()))
}

fn is_held_by(job: &Job, worker: &WorkerId) -> bool {
    job.life.state.lease().is_some_and(|lease| lease.worker == *worker)
}

fn from_environment() -> Option<(JobId, u32, WorkerId)> {
    let variable = |name| std::env::var(name).ok();
    Some((
        variable(JOB_ID)?.parse().ok()?,
        variable(ATTEMPT)?.parse().ok()?,
        variable(WORKER_ID)?.parse().ok()?,
    ))
}

/// A breadth-first walk over unfinished jobs and their unfinished dependencies; visits each job once.
struct DependencyWalk<'s> {
    store: &'s dyn Store,
    /// Each job with the requested job that led to it.
    open: VecDeque<(JobId, JobId)>,
    visited: HashSet<JobId>,
}

impl<'s> DependencyWalk<'s> {
    fn from(store: &'s dyn Store, ids: impl IntoIterator<Item = JobId>) -> Self {
        let open = ids.into_iter().map(|id| (id.clone(), id)).collect();
        Self { store, open, visited: HashSet::new() }
    }

    fn next(&mut self) -> Result<Option<(JobId, Job)>, StoreError> {
        while let Some((asked, id)) = self.open.pop_front() {
            if self.visited.len() >= MAX_JOBS_VISITED || !self.visited.insert(id.clone()) {
                continue;
            }
            let Some(job) = self.store.find(&id)?.filter(|job| !job.life.state.name().is_finished()) else {
                continue;
            };
            if job.life.state.blocked_by() > 0 {
                let parents = job.depends_on.iter().map(|parent| (asked.clone(), parent.clone()));
                self.open.extend(parents);
            }
            return Ok(Some((asked, job)));
        }
        Ok(None)
    }
}
