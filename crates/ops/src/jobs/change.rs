//! Cancelling, retrying and removing jobs by id.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::bulk::partly_done;
use crate::OpError;
use domain::job::Job;
use domain::job::life::{CancelReason, State, StateName};
use domain::log;
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;
pub use store::JobVerb as Verb;
use store::{Change, Conflict, Dependent, Notice, Store, StoreError, Targets, retention};
use sys::guards;
use sys::guards::Guard;

/// How many jobs are passed to the store at once. The store changes as many of them as fit in one short transaction.
const CHUNK: usize = 1_000;

/// How many jobs of the graph around a running job are examined to list those that were cancelled with it.
const MAX_DEPENDENTS_NAMED: usize = 1_000;

/// How long `cancel` waits for running jobs to end. A job that takes longer ends after the command has returned.
pub(crate) const CANCEL_WAIT_LIMIT: Duration = Duration::from_secs(1);
pub(crate) const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A changed job: its present version, or its last version if it was removed.
#[derive(Debug)]
pub struct ChangedJob {
    pub job: Job,
    pub state: StateName,
    /// Jobs that were cancelled because they depend on it directly or indirectly.
    pub dependents: Vec<JobId>,
    /// Whether workers are still cancelling more dependents.
    pub leaves_dependents: bool,
}

/// The results for a list of ids, in the order of the ids.
#[derive(Debug, Default)]
pub struct ChangeResults {
    pub jobs: Vec<Result<ChangedJob, OpError>>,
    /// Why the remaining ids have no result.
    pub stopped: Option<OpError>,
    /// How many jobs were changed.
    done: u64,
    /// Jobs that were cancelled with a job they depend on and whose ids have not been processed yet.
    cancelled_with_parent: HashSet<JobId>,
}

/// Tries all of these ids; stops if the store fails.
pub fn change(store: &dyn Store, verb: Verb, ids: &[JobId], by: &str) -> ChangeResults {
    let mut answers = ChangeResults::default();
    while answers.jobs.len() < ids.len() {
        let chunk = first_chunk(&ids[answers.jobs.len()..]);
        if let Err(source) = answers.add_portion(store, verb, chunk, by) {
            answers.stopped = Some(partly_done(answers.done, source));
            break;
        }
    }
    answers
}

impl ChangeResults {
    /// Changes as many of these jobs, from the first on, as fit in one transaction.
    fn add_portion(
        &mut self,
        store: &dyn Store,
        verb: Verb,
        chunk: &[JobId],
        by: &str,
    ) -> Result<(), StoreError> {
        let before = if verb == Verb::Remove { find_all(store, chunk)? } else { Vec::new() };
        let began = store.now()?;
        let portion = store.change(verb, Targets::Ids(chunk), by)?;
        let chunk = &chunk[..portion.changes.len()];
        let changes: Vec<Change> = chunk
            .iter()
            .zip(portion.changes)
            .map(|(id, change)| self.accept_earlier_cancel(id, change))
            .collect();
        self.done += changes.iter().filter(|change| matches!(change, Change::Done(_))).count() as u64;
        self.cancelled_with_parent.extend(portion.dependents.iter().map(|dependent| dependent.id.clone()));
        if verb == Verb::Cancel {
            end_running(store, chunk, &changes)?;
        }
        let after = if verb == Verb::Remove { before } else { find_all(store, chunk)? };
        let mut dependents = dependents_by_root(portion.dependents);
        for ((id, change), job) in chunk.iter().zip(changes).zip(after) {
            let was_running = change == Change::Done(StateName::Processing);
            let answer = answer(id, change, job).map(|changed| {
                let known = dependents.remove(id).unwrap_or_default();
                // Failing to list the dependents must not hide that the job was changed.
                let with_it = || cancelled_with(store, &changed, began).unwrap_or_default();
                let dependents = if was_running { with_it() } else { known };
                ChangedJob { dependents, leaves_dependents: portion.leaves_dependents, ..changed }
            });
            self.jobs.push(answer);
        }
        Ok(())
    }

    /// If an earlier portion cancelled the job with its parent, the conflict is a success.
    fn accept_earlier_cancel(&mut self, id: &JobId, change: Change) -> Change {
        match change {
            Change::Conflict(Conflict::State(StateName::Cancelled))
                if self.cancelled_with_parent.remove(id) =>
            {
                Change::Done(StateName::Cancelled)
            }
            Change::Done(_) | Change::Conflict(_) | Change::NotFound => change,
        }
    }
}

/// The first [`CHUNK`] of these.
pub(crate) fn first_chunk<T>(jobs: &[T]) -> &[T] {
    let most = if guards::is_off(Guard::Portions) { usize::MAX } else { CHUNK };
    &jobs[..jobs.len().min(most)]
}

fn dependents_by_root(dependents: Vec<Dependent>) -> HashMap<JobId, Vec<JobId>> {
    let mut by_root: HashMap<JobId, Vec<JobId>> = HashMap::new();
    for Dependent { id, of } in dependents {
        by_root.entry(of).or_default().push(id);
    }
    by_root
}

/// The dependents that the worker cancelled after it killed the command.
fn cancelled_with(
    store: &dyn Store,
    changed: &ChangedJob,
    began: Timestamp,
) -> Result<Vec<JobId>, StoreError> {
    if changed.state != StateName::Cancelled {
        return Ok(Vec::new());
    }
    let graph = store.graph(&changed.job.id, MAX_DEPENDENTS_NAMED)?.unwrap_or_default();
    let mut cancelled = Vec::new();
    for node in graph.nodes.iter().skip(1).filter(|node| node.state == Some(StateName::Cancelled)) {
        let state = store.find(&node.id)?.map(|job| job.life.state);
        if let Some(State::Cancelled { finished_at, reason: CancelReason::Dependency }) = state
            && finished_at >= began
        {
            cancelled.push(node.id.clone());
        }
    }
    Ok(cancelled)
}

/// Deletes the log files of removed jobs.
pub fn remove_logs<'a>(home: &Path, gone: impl Iterator<Item = &'a Job>) {
    for job in gone {
        retention::remove_logs(&home.join(log::FOLDER), job.number, job.life.attempts);
    }
}

/// Wakes the workers of cancelled running jobs and waits up to [`CANCEL_WAIT_LIMIT`] for the jobs to end; most end sooner.
fn end_running(store: &dyn Store, ids: &[JobId], changes: &[Change]) -> Result<(), StoreError> {
    let marked =
        ids.iter().zip(changes).filter(|(_, change)| **change == Change::Done(StateName::Processing));
    let marked: Vec<JobId> = marked.map(|(id, _)| id.clone()).collect();
    let mut workers: Vec<WorkerId> = running_in(store, &marked)?;
    store.announce(Notice::Orders(&workers))?;
    let began = Instant::now();
    while !workers.is_empty() && began.elapsed() < CANCEL_WAIT_LIMIT {
        std::thread::sleep(CANCEL_POLL_INTERVAL);
        workers = running_in(store, &marked)?;
    }
    Ok(())
}

/// The workers that are running these jobs.
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

fn answer(id: &JobId, change: Change, job: Option<Job>) -> Result<ChangedJob, OpError> {
    match (change, job) {
        // Its state may have changed since.
        (Change::Done(StateName::Processing), Some(job)) => {
            let state = job.life.state.name();
            Ok(ChangedJob { job, state, dependents: Vec::new(), leaves_dependents: false })
        }
        (Change::Done(state), Some(job)) => {
            Ok(ChangedJob { job, state, dependents: Vec::new(), leaves_dependents: false })
        }
        (Change::Conflict(conflict), _) => Err(OpError::Conflict { id: id.clone(), conflict }),
        (Change::NotFound, _) | (Change::Done(_), None) => Err(OpError::NoSuchJob(id.clone())),
    }
}

/// Finds a job and refuses it unless it is dead, for the verbs of the dead-letter queue.
pub fn only_dead(store: &dyn Store, id: &JobId) -> Result<Job, OpError> {
    let job = store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    match job.life.state.name() {
        StateName::Dead => Ok(job),
        state @ (StateName::Pending
        | StateName::Processing
        | StateName::Completed
        | StateName::Failed
        | StateName::Cancelled) => Err(OpError::NotDead { id: id.clone(), state }),
    }
}
