//! Calls from inside a job: which job calls, what it must not wait for, and which job needs the slot that it keeps busy
//! by waiting.
//!
//! A job that waits for another one keeps its slot. Where all slots are kept so, nothing that is waited for could ever
//! start: so the caller starts a worker for one such job at a time, which is the slot that it lends. It also shows by a
//! lock that it waits, so that others inside jobs do not wait for its end.

use std::collections::{HashSet, VecDeque};

use super::attend::{WaitsFor, lacks_a_slot, waits_for};
use crate::OpError;
use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::name::{JobId, QueueName, WorkerId};
use store::{JobFilter, Page, Phase, Store, StoreError, Worker};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::WaitMark;
use sys::process::user;

/// What a worker tells a command about itself; see `engine/variables.rs`.
const JOB_ID: &str = "QUEUECTL_JOB_ID";
const ATTEMPT: &str = "QUEUECTL_ATTEMPT";
const WORKER_ID: &str = "QUEUECTL_WORKER_ID";

/// How many jobs are looked at to find out what others depend on.
const MOST_VISITED: usize = 10_000;
/// How many jobs run at most whose workers are looked at.
const MOST_RUNNING: usize = 10_000;

/// The job that this process is a part of.
#[derive(Clone, Debug)]
pub struct Inside {
    pub job: Job,
    worker: WorkerId,
}

impl Inside {
    /// What the environment says is believed only where a lease in this store says the same: it may have been passed on,
    /// or be about another queue.
    pub fn find(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        let Some((id, attempt, worker)) = named() else {
            return Ok(None);
        };
        let job = store.find(&id)?.filter(|job| job.life.attempts == attempt && is_held_by(job, &worker));
        Ok(job.map(|job| Self { job, worker }))
    }

    /// Shows others that this job waits. Where that fails they may wait for this job, and no more.
    pub fn mark(&self, store: &dyn Store) -> Result<Option<WaitMark>, StoreError> {
        let workers = store.workers()?;
        let own = workers.iter().find(|worker| worker.id == self.worker);
        Ok(own.and_then(|own| WaitMark::hold(&own.folder, own.id.as_str(), self.job.number).ok()))
    }

    /// Who gives an order from inside this job.
    pub fn by(&self) -> String {
        format!("{} in job {}", user::name(), self.job.id)
    }

    /// Refuses to wait for jobs that cannot end before this one: itself, those that depend on it, and those of a queue in
    /// which it takes the only place.
    pub fn may_wait_for(
        &self,
        store: &dyn Store,
        ids: impl IntoIterator<Item = JobId>,
    ) -> Result<(), OpError> {
        let narrow = self.fills_its_queue(store)?;
        let mut jobs = Unfinished::behind(store, ids);
        while let Some((asked, job)) = jobs.next()? {
            if job.id == self.job.id {
                let dependent = (asked != job.id).then_some(asked);
                return Err(OpError::WaitsForItself { job: job.id, dependent });
            }
            if narrow && job.queue == self.job.queue && job.life.state.name() != StateName::Processing {
                return Err(OpError::OnlyPlaceTaken { job: self.job.id.clone(), queue: job.queue });
            }
        }
        Ok(())
    }

    /// The same for a job that is about to be enqueued into this queue.
    pub fn may_wait_in(&self, store: &dyn Store, queue: &QueueName) -> Result<(), OpError> {
        if *queue == self.job.queue && self.fills_its_queue(store)? {
            return Err(OpError::OnlyPlaceTaken { job: self.job.id.clone(), queue: queue.clone() });
        }
        Ok(())
    }

    /// The first job among these, and those that they depend on, that waits for a place in the queue of this one.
    pub fn crowds_out(
        &self,
        store: &dyn Store,
        ids: impl IntoIterator<Item = JobId>,
    ) -> Result<Option<Job>, OpError> {
        let mut jobs = Unfinished::behind(store, ids);
        while let Some((_, job)) = jobs.next()? {
            if job.queue == self.job.queue
                && matches!(waits_for(store, &job)?, Some(WaitsFor::FullQueue { .. }))
            {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    fn fills_its_queue(&self, store: &dyn Store) -> Result<bool, StoreError> {
        Ok(store.queues()?.iter().any(|queue| queue.name == self.job.queue && queue.concurrency == Some(1)))
    }
}

/// Whose job runs in `worker` and waits for others, by its lock.
fn is_waiting(job: &Job, worker: &Worker) -> bool {
    liveness_lock::is_waiting(&worker.folder, worker.id.as_str(), job.number)
}

/// Of these workers those that run nothing but this job, which waits for their end, and others that wait themselves; each
/// with these jobs.
pub fn kept_by_waiting(
    store: &dyn Store,
    workers: &[Worker],
    caller: &JobId,
) -> Result<Vec<(WorkerId, Vec<JobId>)>, StoreError> {
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    let running = store.list(&running, &Page { limit: MOST_RUNNING, after: None })?;
    let unkillable = store.unkillable()?;
    // A stopping worker leaves such a job behind.
    let is_left_behind =
        |job: &Job| unkillable.iter().any(|noted| noted.lease.job == job.id && noted.is_there());
    let kept = workers.iter().filter_map(|worker| {
        let own: Vec<&Job> = running.iter().filter(|job| is_held_by(job, &worker.id)).collect();
        let waits = |job: &Job| job.id == *caller || is_left_behind(job) || is_waiting(job, worker);
        let all_wait = !own.is_empty() && own.iter().all(|job| waits(job));
        all_wait.then(|| (worker.id.clone(), own.iter().map(|job| job.id.clone()).collect()))
    });
    Ok(kept.collect())
}

/// The first job among these, and those that they depend on, that could run if a worker had a slot for it.
pub fn starved(
    store: &dyn Store,
    ids: impl IntoIterator<Item = JobId>,
    workers: &[Worker],
) -> Result<Option<Job>, OpError> {
    let mut jobs = Unfinished::behind(store, ids);
    while let Some((_, job)) = jobs.next()? {
        if lacks_a_slot(&job, workers) && is_ready(store, &job)? {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Whether nothing keeps a job from running but the lack of a slot.
pub fn is_ready(store: &dyn Store, job: &Job) -> Result<bool, OpError> {
    Ok(matches!(waits_for(store, job)?, Some(WaitsFor::Slot { .. })))
}

fn is_held_by(job: &Job, worker: &WorkerId) -> bool {
    match &job.life.state {
        State::Processing(lease) => lease.worker == *worker,
        State::Pending { .. }
        | State::Failed
        | State::Completed { .. }
        | State::Dead { .. }
        | State::Cancelled { .. } => false,
    }
}

fn named() -> Option<(JobId, u32, WorkerId)> {
    let variable = |name| std::env::var(name).ok();
    Some((
        variable(JOB_ID)?.parse().ok()?,
        variable(ATTEMPT)?.parse().ok()?,
        variable(WORKER_ID)?.parse().ok()?,
    ))
}

/// Walks over jobs that are not finished, and then over what these wait for; each is met once.
struct Unfinished<'s> {
    store: &'s dyn Store,
    /// Each with the one that was asked for.
    open: VecDeque<(JobId, JobId)>,
    met: HashSet<JobId>,
}

impl<'s> Unfinished<'s> {
    fn behind(store: &'s dyn Store, ids: impl IntoIterator<Item = JobId>) -> Self {
        let open = ids.into_iter().map(|id| (id.clone(), id)).collect();
        Self { store, open, met: HashSet::new() }
    }

    fn next(&mut self) -> Result<Option<(JobId, Job)>, StoreError> {
        while let Some((asked, id)) = self.open.pop_front() {
            if self.met.len() >= MOST_VISITED || !self.met.insert(id.clone()) {
                continue;
            }
            let Some(job) = self.store.find(&id)?.filter(|job| !job.life.state.name().is_finished()) else {
                continue;
            };
            if let State::Pending { blocked_by: 1.. } = job.life.state {
                let behind = job.depends_on.iter().map(|parent| (asked.clone(), parent.clone()));
                self.open.extend(behind);
            }
            return Ok(Some((asked, job)));
        }
        Ok(None)
    }
}
