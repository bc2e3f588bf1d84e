//! Pausing running jobs, and continuing them.

use crate::rows::jobs::row::JobRow;
use crate::rows::jobs::{apply, leases, requests};
use crate::rows::tables::{events, settings, workers};
use crate::rows::tx::Tx;
use crate::{Change, Conflict, Result, WorkerState};
use domain::job::life::{Event, Refusal, StateName, transition};
use domain::values::name::WorkerId;

pub(crate) fn pause(tx: &mut Tx<'_>, job: &JobRow, by: &str) -> Result<Change> {
    // A worker that stops waits for its jobs to end, so it resumes the paused ones.
    let lease = job.life.state.lease();
    let worker = lease.map(|lease| workers::find(tx, &lease.worker)).transpose()?;
    if worker.is_some_and(|worker| worker.state != WorkerState::Running) {
        return Ok(Change::Conflict(Conflict::WorkerStopping));
    }
    change(tx, job, Event::Pause, "pause", by)
}

pub(crate) fn resume(tx: &mut Tx<'_>, job: &JobRow, by: &str) -> Result<Change> {
    change(tx, job, Event::Resume, "resume", by)
}

/// Resumes the paused jobs of a worker that has to stop.
pub(crate) fn resume_all(tx: &mut Tx<'_>, worker: &WorkerId) -> Result<()> {
    let worker_seq = workers::seq(tx, worker)?;
    for job in leases::held_by(tx, worker_seq)? {
        resume(tx, &job, worker.as_str())?;
    }
    Ok(())
}

/// Records an event only if something changes.
fn change(tx: &mut Tx<'_>, job: &JobRow, event: Event, name: &str, by: &str) -> Result<Change> {
    let policy = settings::policy(tx, job)?;
    let changed = match transition(&job.life, event, &policy, tx.now) {
        Ok(changed) => changed,
        Err(Refusal::Cancelling) => return Ok(Change::Conflict(Conflict::Cancelling)),
        Err(Refusal::WrongState(_) | Refusal::Stale { .. } | Refusal::NotDue | Refusal::Blocked) => {
            return Ok(Change::Conflict(Conflict::NotRunning(job.life.state.name())));
        }
    };
    if changed.life != job.life && apply(tx, job, &changed, &job.latest)? {
        requests::store(tx, job, &changed.life)?;
        events::record(tx, Some(job.seq), name, by, None)?;
    }
    Ok(Change::Done(StateName::Processing))
}
