//! Whether a worker serves a job, what the job waits for, and its exit code.

use domain::explain::wait_reason::{WaitReason, wait_reasons};
use domain::job::Job;
use domain::job::life::State;
use store::{Queue, Store, StoreError, Worker, WorkerState};

/// A shell reports a command killed by signal n with exit code 128 + n.
const SIGNAL_BASE: i32 = 128;

/// Whether any of these live workers runs this job or would claim it. Always true for a finished job.
pub fn has_worker(job: &Job, workers: &[Worker]) -> bool {
    let state = &job.life.state;
    let runs_it = |worker: &Worker| state.lease().is_some_and(|lease| lease.worker == worker.id);
    state.name().is_finished() || workers.iter().any(|worker| runs_it(worker) || would_take(worker, job))
}

fn would_take(worker: &Worker, job: &Job) -> bool {
    worker.served.has(job) && worker.state == WorkerState::Running
}

/// Whether none of these workers that would claim this job has a free slot.
pub fn lacks_free_slot(job: &Job, workers: &[Worker]) -> bool {
    !workers.iter().any(|worker| would_take(worker, job) && worker.running < worker.concurrency)
}

/// Why a waiting job is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// `None` if it needs only a free slot.
    pub reason: Option<WaitReason>,
    /// How many jobs are running, in all queues.
    pub running: u64,
}

/// `None` if the job is running or finished.
pub fn waiting(store: &dyn Store, job: &Job) -> Result<Option<Waiting>, StoreError> {
    let queues = store.queues()?;
    let own = queues.iter().find(|queue| queue.name == job.queue);
    let limits = own.map(Queue::limits).unwrap_or_default();
    Ok(wait_reasons(&job.life, limits, store.now()?).map(|reasons| Waiting {
        reason: reasons.into_iter().min(),
        running: queues.iter().map(Queue::running).sum(),
    }))
}

/// The exit code that a shell would report for the command of a finished job: its own, or 128 plus the signal that killed
/// it. `None` if the job did not end with its command, for example because it was cancelled.
pub fn exit_code(job: &Job) -> Option<u8> {
    let code = match job.life.state {
        State::Completed { .. } => Some(0),
        State::Dead { .. } => {
            job.latest.exit_code.or(job.latest.signal.map(|signal| SIGNAL_BASE + signal.number()))
        }
        State::Pending { .. } | State::Processing(_) | State::Failed | State::Cancelled { .. } => None,
    };
    code.and_then(|code| u8::try_from(code).ok())
}
