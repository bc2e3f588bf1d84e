//! Whether a worker serves a job, what the job waits for, and its exit code.

use crate::OpError;
use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{Pause, ServedJobs, Store, Worker, WorkerState};

/// A shell reports a command killed by signal n with exit code 128 + n.
const SIGNAL_BASE: i32 = 128;

/// Whether any of these live workers runs this job or would claim it. Always true for a finished job.
pub fn has_worker(job: &Job, workers: &[Worker]) -> bool {
    let runs_in: Option<&WorkerId> = match &job.life.state {
        State::Processing(lease) => Some(&lease.worker),
        State::Pending { .. } | State::Failed => None,
        State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => return true,
    };
    workers.iter().any(|worker| Some(&worker.id) == runs_in || would_take(worker, job))
}

fn would_take(worker: &Worker, job: &Job) -> bool {
    let serves_it = match &worker.served {
        ServedJobs::All => true,
        ServedJobs::InOrder(queues) => queues.contains(&job.queue),
        ServedJobs::Job(id) => *id == job.id,
    };
    serves_it && worker.state == WorkerState::Running
}

/// Whether none of these workers that would claim this job has a free slot.
pub fn lacks_free_slot(job: &Job, workers: &[Worker]) -> bool {
    !workers.iter().any(|worker| would_take(worker, job) && worker.running < worker.concurrency)
}

/// The reason why a job is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Its queue must be resumed.
    PausedQueue(Pause),
    Jobs {
        count: u32,
    },
    /// Its scheduled time or the end of its backoff.
    Time(Timestamp),
    /// Its queue has reached its concurrency limit.
    FullQueue {
        running: u64,
    },
    /// The rate limit of its queue allows the next start at this time.
    Rate(Timestamp),
    /// A free slot; `running` jobs are running.
    Slot {
        running: u64,
    },
}

/// `None` if the job is running or finished.
pub fn wait_reason(store: &dyn Store, job: &Job) -> Result<Option<WaitReason>, OpError> {
    match &job.life.state {
        State::Pending { blocked_by: count @ 1.. } => return Ok(Some(WaitReason::Jobs { count: *count })),
        State::Pending { blocked_by: 0 } | State::Failed => {}
        State::Processing(_) | State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return Ok(None);
        }
    }
    let queues = store.queues()?;
    let own = queues.iter().find(|queue| queue.name == job.queue);
    if let Some((_, pause)) = own.and_then(|queue| queue.paused.as_ref()) {
        return Ok(Some(WaitReason::PausedQueue(pause.clone())));
    }
    if job.life.due_at > store.now()? {
        return Ok(Some(WaitReason::Time(job.life.due_at)));
    }
    if let Some(queue) = own.filter(|queue| queue.is_full()) {
        return Ok(Some(WaitReason::FullQueue { running: queue.running() }));
    }
    if let Some(at) = own.and_then(|queue| queue.next_start_at) {
        return Ok(Some(WaitReason::Rate(at)));
    }
    let running = queues.iter().filter_map(|queue| queue.counts.get(&StateName::Processing)).sum();
    Ok(Some(WaitReason::Slot { running }))
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
