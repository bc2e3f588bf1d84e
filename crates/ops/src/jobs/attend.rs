//! Who sees to a job, what it waits for, and which exit code it ended with.

use crate::OpError;
use domain::job::Job;
use domain::job::life::{State, StateName};
use domain::values::name::WorkerId;
use domain::values::timestamp::Timestamp;
use store::{Pause, ServedJobs, Store, Worker, WorkerState};

/// What a shell adds to the number of a signal that ended a command.
const SIGNAL_BASE: i32 = 128;

/// Whether one of these workers, all alive, runs an unfinished job or would take it.
pub fn is_attended(job: &Job, workers: &[Worker]) -> bool {
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

/// Whether none of these workers has a slot for a job of its own that is ready.
pub fn lacks_a_slot(job: &Job, workers: &[Worker]) -> bool {
    !workers.iter().any(|worker| would_take(worker, job) && worker.running < worker.concurrency)
}

/// What a job that does not run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Somebody has to let its queue go on.
    PausedQueue(Pause),
    Jobs {
        count: u32,
    },
    /// Its time, or the end of its backoff.
    Time(Timestamp),
    /// As many jobs of its queue run as may.
    FullQueue {
        running: u64,
    },
    /// The rate of its queue lets the next job start then.
    Rate(Timestamp),
    /// This many jobs run.
    Slot {
        running: u64,
    },
}

/// `None` if it runs or is finished.
pub fn waits_for(store: &dyn Store, job: &Job) -> Result<Option<WaitsFor>, OpError> {
    match &job.life.state {
        State::Pending { blocked_by: count @ 1.. } => return Ok(Some(WaitsFor::Jobs { count: *count })),
        State::Pending { blocked_by: 0 } | State::Failed => {}
        State::Processing(_) | State::Completed { .. } | State::Dead { .. } | State::Cancelled { .. } => {
            return Ok(None);
        }
    }
    let queues = store.queues()?;
    let own = queues.iter().find(|queue| queue.name == job.queue);
    if let Some((_, pause)) = own.and_then(|queue| queue.paused.as_ref()) {
        return Ok(Some(WaitsFor::PausedQueue(pause.clone())));
    }
    if job.life.due_at > store.now()? {
        return Ok(Some(WaitsFor::Time(job.life.due_at)));
    }
    if let Some(queue) = own.filter(|queue| queue.is_full()) {
        return Ok(Some(WaitsFor::FullQueue { running: queue.running() }));
    }
    if let Some(at) = own.and_then(|queue| queue.next_start_at) {
        return Ok(Some(WaitsFor::Rate(at)));
    }
    let running = queues.iter().filter_map(|queue| queue.counts.get(&StateName::Processing)).sum();
    Ok(Some(WaitsFor::Slot { running }))
}

/// What a shell would have said of the command of a finished job: its exit code, or 128 and the signal that ended it.
/// `None` where the end was not the command's own.
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
