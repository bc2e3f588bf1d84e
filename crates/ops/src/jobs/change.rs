//! Changing jobs by id: cancel, retry, remove.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use super::bulk::half_done;
use crate::OpError;
use crate::worker::announce;
use domain::job::Job;
use domain::job::life::{CancelReason, State, StateName};
use domain::log;
use domain::values::name::{JobId, WorkerId};
use domain::values::timestamp::Timestamp;
pub use store::JobVerb as Verb;
use store::{Change, Conflict, Dependent, Store, StoreError, retention};
use sys::guards;
use sys::guards::Guard;

/// How many jobs are handed to the store at once. It changes as many of them as one short transaction takes.
const CHUNK: usize = 1_000;

/// How many jobs around one that ran are looked at, to name those that were cancelled with it.
const MOST_NAMED: usize = 1_000;

/// How long a cancel waits for running jobs to end. One that takes longer goes on without being waited for.
pub(crate) const CANCEL_PATIENCE: Duration = Duration::from_secs(1);
pub(crate) const CANCEL_LOOK: Duration = Duration::from_millis(5);

/// A job that was changed: as it is now, or as it was if it is gone.
#[derive(Debug)]
pub struct Changed {
    pub job: Job,
    pub state: StateName,
    /// Jobs that were cancelled because they depend on it, itself or through others.
    pub dependents: Vec<JobId>,
    /// The workers are cancelling more of them.
    pub leaves_dependents: bool,
}

/// What became of the jobs with some ids, in the order of the ids.
#[derive(Debug, Default)]
pub struct Answers {
    pub jobs: Vec<Result<Changed, OpError>>,
    /// Why the ids behind these have no answer.
    pub stopped: Option<OpError>,
    /// How many jobs the store has changed.
    done: u64,
    /// Jobs that were cancelled with one that they depend on, and whose ids have not come up yet.
    with_others: HashSet<JobId>,
}

/// Tries all of these ids, until the store fails.
pub fn change(store: &dyn Store, verb: Verb, ids: &[JobId], by: &str) -> Answers {
    let mut answers = Answers::default();
    while answers.jobs.len() < ids.len() {
        let chunk = first(&ids[answers.jobs.len()..]);
        if let Err(source) = answers.add_portion(store, verb, chunk, by) {
            answers.stopped = Some(half_done(answers.done, source));
            break;
        }
    }
    answers
}

impl Answers {
    /// Changes the first of these jobs, as many as one transaction takes.
    fn add_portion(
        &mut self,
        store: &dyn Store,
        verb: Verb,
        chunk: &[JobId],
        by: &str,
    ) -> Result<(), StoreError> {
        let before = if verb == Verb::Remove { find_all(store, chunk)? } else { Vec::new() };
        let began = store.now()?;
        let portion = store.change_ids(verb, chunk, by)?;
        let chunk = &chunk[..portion.changes.len()];
        let changes: Vec<Change> =
            chunk.iter().zip(portion.changes).map(|(id, change)| self.or_with_others(id, change)).collect();
        self.done += changes.iter().filter(|change| matches!(change, Change::Done(_))).count() as u64;
        self.with_others.extend(portion.dependents.iter().map(|dependent| dependent.id.clone()));
        if verb == Verb::Cancel {
            end_running(store, chunk, &changes)?;
        }
        let after = if verb == Verb::Remove { before } else { find_all(store, chunk)? };
        let mut dependents = dependents_by_root(portion.dependents);
        for ((id, change), job) in chunk.iter().zip(changes).zip(after) {
            let was_running = change == Change::Done(StateName::Processing);
            let answer = answer(id, change, job).map(|changed| {
                let known = dependents.remove(id).unwrap_or_default();
                // The job is changed, also where its dependents cannot be named.
                let with_it = || cancelled_with(store, &changed, began).unwrap_or_default();
                let dependents = if was_running { with_it() } else { known };
                Changed { dependents, leaves_dependents: portion.leaves_dependents, ..changed }
            });
            self.jobs.push(answer);
        }
        Ok(())
    }

    /// Where an earlier portion cancelled the job together with one that it depends on, the caller has what it wanted.
    fn or_with_others(&mut self, id: &JobId, change: Change) -> Change {
        match change {
            Change::Conflict(Conflict::State(StateName::Cancelled)) if self.with_others.remove(id) => {
                Change::Done(StateName::Cancelled)
            }
            Change::Done(_) | Change::Conflict(_) | Change::NotFound => change,
        }
    }
}

/// The first of these, as many as the store is given at once.
pub(crate) fn first<T>(jobs: &[T]) -> &[T] {
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

/// Dependents that the worker cancelled after it killed the command.
fn cancelled_with(store: &dyn Store, changed: &Changed, began: Timestamp) -> Result<Vec<JobId>, StoreError> {
    if changed.state != StateName::Cancelled {
        return Ok(Vec::new());
    }
    let graph = store.graph(&changed.job.id, MOST_NAMED)?.unwrap_or_default();
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

/// Removes the log files of jobs that are gone.
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
            Ok(Changed { job, state, dependents: Vec::new(), leaves_dependents: false })
        }
        (Change::Done(state), Some(job)) => {
            Ok(Changed { job, state, dependents: Vec::new(), leaves_dependents: false })
        }
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
