//! Changing jobs by id: cancel, retry, remove.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{OpError, announce};
use crate::domain::job::Job;
use crate::domain::life::{State, StateName};
use crate::domain::log;
use crate::domain::name::{JobId, WorkerId};
pub use crate::store::JobVerb as Verb;
use crate::store::{Change, Conflict, Store, StoreError, retention};

/// How many jobs one transaction changes at most.
pub(super) const CHUNK: usize = 1_000;

/// How long a cancel waits for running jobs to end. One that takes longer goes on without being waited for.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(1);
pub(super) const CANCEL_LOOK: Duration = Duration::from_millis(5);

/// A job that was changed: as it is now, or as it was if it is gone.
#[derive(Debug)]
pub struct Changed {
    pub job: Job,
    pub state: StateName,
}

/// Tries all of these ids. The answers are in their order.
pub fn change(
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
    by: &str,
) -> Result<Vec<Result<Changed, OpError>>, StoreError> {
    let mut answers = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(CHUNK) {
        let before = if verb == Verb::Remove { find_all(store, chunk)? } else { Vec::new() };
        let changes = apply(store, verb, chunk, by)?;
        if verb == Verb::Cancel {
            end_running(store, chunk, &changes)?;
        }
        let after = if verb == Verb::Remove { before } else { find_all(store, chunk)? };
        for ((id, change), job) in chunk.iter().zip(changes).zip(after) {
            answers.push(answer(id, change, job));
        }
    }
    Ok(answers)
}

fn apply(store: &dyn Store, verb: Verb, ids: &[JobId], by: &str) -> Result<Vec<Change>, StoreError> {
    match verb {
        Verb::Cancel => store.cancel(ids, by),
        Verb::Retry => store.retry(ids, by),
        Verb::Remove => store.remove(ids, by),
    }
}

/// Removes what jobs printed that are gone; see [`change`].
pub fn remove_logs<'a>(home: &Path, gone: impl Iterator<Item = &'a Job>) {
    for job in gone {
        retention::remove_logs(&home.join(log::FOLDER), job.number, job.life.attempts);
    }
}

/// Tells the workers of jobs that run and were cancelled, and gives them a moment to end them: mostly that is enough.
fn end_running(store: &dyn Store, ids: &[JobId], changes: &[Change]) -> Result<(), StoreError> {
    let marked =
        ids.iter().zip(changes).filter(|(_, change)| **change == Change::Done(StateName::Processing));
    let marked: Vec<JobId> = marked.map(|(id, _)| id.clone()).collect();
    let mut workers: Vec<WorkerId> = running_in(store, &marked)?;
    announce::to(store, &workers)?;
    let began = Instant::now();
    while !workers.is_empty() && began.elapsed() < CANCEL_PATIENCE {
        std::thread::sleep(CANCEL_LOOK);
        workers = running_in(store, &marked)?;
    }
    Ok(())
}

/// The workers that run these jobs now.
fn running_in(store: &dyn Store, ids: &[JobId]) -> Result<Vec<WorkerId>, StoreError> {
    let jobs = find_all(store, ids)?;
    let lease = |job: Job| match job.life.state {
        State::Processing(lease) => Some(lease.worker),
        State::Pending { .. }
        | State::Completed { .. }
        | State::Failed
        | State::Dead { .. }
        | State::Cancelled { .. } => None,
    };
    Ok(jobs.into_iter().flatten().filter_map(lease).collect())
}

fn find_all(store: &dyn Store, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
    ids.iter().map(|id| store.find(id)).collect()
}

fn answer(id: &JobId, change: Change, job: Option<Job>) -> Result<Changed, OpError> {
    match (change, job) {
        // By now it may have gone on.
        (Change::Done(StateName::Processing), Some(job)) => {
            let state = job.life.state.name();
            Ok(Changed { job, state })
        }
        (Change::Done(state), Some(job)) => Ok(Changed { job, state }),
        (Change::Conflict(conflict), _) => Err(OpError::Conflict { id: id.clone(), conflict }),
        (Change::NotFound, _) | (Change::Done(_), None) => Err(OpError::NoSuchJob(id.clone())),
    }
}

/// Refuses ids of jobs that are not dead, for the verbs of the dead-letter queue.
pub fn only_dead(store: &dyn Store, id: &JobId) -> Result<Job, OpError> {
    let job = store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    match job.life.state.name() {
        StateName::Dead => Ok(job),
        state @ (StateName::Pending
        | StateName::Processing
        | StateName::Completed
        | StateName::Failed
        | StateName::Cancelled) => {
            Err(OpError::Conflict { id: id.clone(), conflict: Conflict::State(state) })
        }
    }
}
