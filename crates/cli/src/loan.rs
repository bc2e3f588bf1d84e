//! A call inside a job that waits for other jobs: it lends them the slot that its own job keeps meanwhile.

use std::time::{Duration, Instant};

use super::context::Context;
use super::failure::Failure;
use super::verbs::workers::worker::start_for_job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::jobs::inside::{CallingJob, first_starved, is_ready};
use ops::worker::alive::live_workers;
use store::{ServedJobs, Store, Worker, WorkerState};
use sys::fs::liveness_lock::WaitMark;

/// How often to look whether a job needs the slot.
const LOOK_PAUSE: Duration = Duration::from_millis(250);
/// How long a job waits for queue capacity before the caller is warned.
const CROWD_PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Loan<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    inside: CallingJob,
    _mark: Option<WaitMark>,
    began: Instant,
    was_told_of_crowd: bool,
    look_at: Instant,
    /// The job that has the slot, or had it last.
    lent_to: Option<JobId>,
}

impl<'a> Loan<'a> {
    /// The waiting begins.
    pub(super) fn new(
        context: &'a Context,
        store: &'a dyn Store,
        inside: CallingJob,
    ) -> Result<Self, Failure> {
        let mark = inside.mark_waiting(store)?;
        let now = Instant::now();
        Ok(Self {
            context,
            store,
            inside,
            _mark: mark,
            began: now,
            was_told_of_crowd: false,
            look_at: now,
            lent_to: None,
        })
    }

    /// Starts a worker for one of these jobs, or one that they depend on, where it could run and all slots are busy.
    pub(super) fn look(&mut self, ids: impl FnOnce() -> Result<Vec<JobId>, Failure>) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + LOOK_PAUSE;
        if self.is_lent()? {
            return Ok(());
        }
        let ids = ids()?;
        let Some(job) = first_starved(self.store, ids.iter().cloned(), &live_workers(self.store)?)? else {
            return self.tell_of_crowd(ids);
        };
        start_for_job(self.context, &job.id)?;
        self.lent_to = Some(job.id);
        Ok(())
    }

    /// Says once that a job waits for a place in the queue in which the caller takes one.
    fn tell_of_crowd(&mut self, ids: Vec<JobId>) -> Result<(), Failure> {
        if self.was_told_of_crowd || self.began.elapsed() < CROWD_PATIENCE {
            return Ok(());
        }
        let Some(waiting) = self.inside.find_blocked_by_full_queue(self.store, ids)? else {
            return Ok(());
        };
        self.was_told_of_crowd = true;
        let (own, queue) = (&self.inside.job.id, &waiting.queue);
        self.context.hint(&format!(
            "job {} waits for a place in queue {queue}, and job {own}, which waits for it, takes one: it starts when \
             another job of that queue has ended, or `queuectl queue set {queue} --concurrency N` allows more",
            waiting.id
        ))
    }

    /// Whether the job that got the slot uses it: it runs, or is about to in the worker that was started for it. One that
    /// waits for its time does not.
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
