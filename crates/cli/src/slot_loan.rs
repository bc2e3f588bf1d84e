//! Lends a job's slot while the job waits for other jobs: a call to `run` or `wait` inside a job occupies its slot
//! without using it, so it may start one extra worker for a job that it waits for.

use std::time::{Duration, Instant};

use super::context::Context;
use super::failure::Failure;
use super::verbs::workers::worker::start_for_job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::jobs::calling_job::{CallingJob, first_starved, is_ready};
use ops::worker::live::live_workers;
use store::{ServedJobs, Store, Worker, WorkerState};
use sys::fs::liveness_lock::WaitLock;

/// How often to check whether a job needs the slot.
const LOAN_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long a job waits for queue capacity before the caller is warned.
const CAPACITY_HINT_DELAY: Duration = Duration::from_secs(1);

pub(super) struct SlotLoan<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    inside: CallingJob,
    _wait_lock: Option<WaitLock>,
    began: Instant,
    capacity_hint_given: bool,
    next_check_at: Instant,
    /// The job that has the slot, or had it last.
    lent_to: Option<JobId>,
}

impl<'a> SlotLoan<'a> {
    /// Marks the enclosing job as waiting for these jobs, for as long as the loan exists. Refuses a wait that
    /// could never end.
    pub(super) fn new(
        context: &'a Context,
        store: &'a dyn Store,
        inside: CallingJob,
        awaited: impl IntoIterator<Item = JobId>,
    ) -> Result<Self, Failure> {
        inside.check_may_wait_for(store, awaited)?;
        let wait_lock = inside.mark_waiting(store)?;
        let now = Instant::now();
        Ok(Self {
            context,
            store,
            inside,
            _wait_lock: wait_lock,
            began: now,
            capacity_hint_given: false,
            next_check_at: now,
            lent_to: None,
        })
    }

    /// Starts a worker for one of these jobs, or one that they depend on, if it is ready and all slots are busy.
    pub(super) fn check(&mut self, ids: impl FnOnce() -> Result<Vec<JobId>, Failure>) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.next_check_at {
            return Ok(());
        }
        self.next_check_at = now + LOAN_CHECK_INTERVAL;
        if self.is_lent()? {
            return Ok(());
        }
        let ids = ids()?;
        let Some(job) = first_starved(self.store, ids.iter().cloned(), &live_workers(self.store)?)? else {
            return self.hint_at_capacity(ids);
        };
        start_for_job(self.context, &job.id)?;
        self.lent_to = Some(job.id);
        Ok(())
    }

    /// Warns once that a job waits for capacity of the queue in which the caller itself occupies a slot.
    fn hint_at_capacity(&mut self, ids: Vec<JobId>) -> Result<(), Failure> {
        if self.capacity_hint_given || self.began.elapsed() < CAPACITY_HINT_DELAY {
            return Ok(());
        }
        let Some(waiting) = self.inside.find_blocked_by_full_queue(self.store, ids)? else {
            return Ok(());
        };
        self.capacity_hint_given = true;
        let (own, queue) = (&self.inside.job.id, &waiting.queue);
        self.context.hint(&format!(
            "job {} cannot start because queue {queue} is full, and job {own}, which waits for it, runs in the same \
             queue; it starts when another job there ends; `queuectl queue set {queue} --concurrency N` raises the limit",
            waiting.id
        ))
    }

    /// Whether the job that got the slot uses it: it is running, or ready and the worker started for it is alive. A job
    /// that waits for its retry time does not use it.
    fn is_lent(&self) -> Result<bool, Failure> {
        let Some(id) = &self.lent_to else {
            return Ok(false);
        };
        match self.store.find(id)? {
            Some(job) if job.life.state.name() == StateName::Processing => Ok(true),
            Some(job) => Ok(is_ready(self.store, &job)? && self.has_worker_for(id)?),
            None => Ok(false),
        }
    }

    fn has_worker_for(&self, id: &JobId) -> Result<bool, Failure> {
        let serves = |worker: &Worker| worker.served == ServedJobs::Job(id.clone());
        let is_there = |worker: &Worker| serves(worker) && worker.state == WorkerState::Running;
        Ok(live_workers(self.store)?.iter().any(is_there))
    }
}
