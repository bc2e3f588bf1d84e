//! Cancelling, retrying and removing jobs: by id, with a result for each.
//!
//! All jobs are changed in portions of one short transaction each. A selected job whose state has changed since is
//! skipped and counted. [`super::bulk`] finds the jobs of a filter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use crate::OpError;
use domain::job::Job;
use domain::job::edit::Edit;
use domain::job::handle::JobHandle;
use domain::job::life::{CancelReason, State, StateName};
use domain::log;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
pub use store::JobVerb as Verb;
use store::{
    Change, Conflict, Dependent, JobFilter, JobRef, Notice, PartialChange, Store, StoreError, Targets,
    retention,
};
use sys::guards;
use sys::guards::Guard;
use sys::poll::Poll;

/// How many jobs are passed to the store at once. The store changes as many of them as fit in one short transaction.
const CHUNK: usize = 1_000;

/// How many jobs of the graph around a running job are examined to list those that were cancelled with it.
const MAX_DEPENDENTS_NAMED: usize = 1_000;

/// How long `cancel` waits for running jobs to end. A job that takes longer ends after the command has returned.
const CANCEL_WAIT_LIMIT: Duration = Duration::from_secs(1);
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A changed job: its present version, or its last version if it was removed.
#[derive(Debug)]
pub struct ChangedJob {
    pub job: Job,
    pub state: StateName,
    /// Jobs that were cancelled because they depend on it directly or indirectly.
    pub dependents: Vec<JobId>,
}

/// The results for a list of ids, in the order of the ids.
#[derive(Debug, Default)]
pub struct ChangeResults {
    pub jobs: Vec<Result<ChangedJob, OpError>>,
    /// Whether workers are still cancelling more dependents.
    pub leaves_dependents: bool,
    /// Why the remaining ids have no result.
    pub stopped: Option<OpError>,
}

/// Tries all of these ids; stops if the store fails.
pub fn change_ids(store: &dyn Store, verb: Verb, ids: &[JobId], by: &str) -> ChangeResults {
    let mut tally = Tally::default();
    let mut jobs = Vec::with_capacity(ids.len());
    let end = change_each(store, verb, ids, by, &mut tally, &mut jobs);
    let stopped = end.err().map(|source| partly_done(tally.done, source));
    ChangeResults { jobs, leaves_dependents: tally.leaves_dependents, stopped }
}

fn change_each(
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
    by: &str,
    tally: &mut Tally,
    results: &mut Vec<Result<ChangedJob, OpError>>,
) -> Result<(), StoreError> {
    let began = store.now()?;
    let before = if verb == Verb::Remove { find_all(store, ids)? } else { Vec::new() };
    let mut changes = Vec::with_capacity(ids.len());
    let mut dependents: HashMap<JobId, Vec<JobId>> = HashMap::new();
    let end = tally.change(store, verb, Targets::Ids(ids), by, |portion| {
        changes.extend(portion.changes);
        for Dependent { id, of } in portion.dependents {
            dependents.entry(of).or_default().push(id);
        }
    });
    let end = end.and_then(|()| tally.end(store));
    let jobs = if verb == Verb::Remove { before } else { find_all(store, &ids[..changes.len()])? };
    for ((id, change), job) in ids.iter().zip(changes).zip(jobs) {
        results.push(match (change, job) {
            (Change::Done(StateName::Processing), Some(job)) => {
                // Failing to list the dependents must not hide that the job was changed.
                let dependents = cancelled_with(store, &job, began).unwrap_or_default();
                Ok(ChangedJob { state: job.life.state.name(), job, dependents })
            }
            (Change::Done(state), Some(job)) => {
                Ok(ChangedJob { job, state, dependents: dependents.remove(id).unwrap_or_default() })
            }
            (Change::Conflict(conflict), job) => {
                let job = JobHandle { id: id.clone(), number: job.map(|job| job.number) };
                Err(OpError::Conflict { job, refused: done(verb), conflict })
            }
            (Change::NotFound, _) | (Change::Done(_), None) => Err(OpError::NoSuchJob(id.clone())),
        });
    }
    end
}

/// What the verb would have done to a job.
fn done(verb: Verb) -> &'static str {
    match verb {
        Verb::Cancel { signal: _ } => "cancelled",
        Verb::Pause => "paused",
        Verb::Resume => "resumed",
        Verb::Retry | Verb::RetryInOrder => "retried",
        Verb::Remove => "removed",
    }
}

/// How many jobs were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    /// Jobs whose state had changed, or that other jobs wait for.
    pub skipped: u64,
    /// Jobs that were not selected but were cancelled because they depend on a cancelled job.
    pub dependents: u64,
    /// Whether workers are still cancelling more dependents.
    pub leaves_dependents: bool,
    /// How many of the `done` jobs their workers have not ended yet.
    pub ending: u64,
    /// Whether the caller stopped it before all jobs had their turn.
    pub was_stopped: bool,
    /// Running jobs that were marked for their workers to end.
    marked: Vec<JobId>,
    /// Jobs that were cancelled with a job they depend on and have not been found among the targets yet.
    cancelled_with_parent: HashSet<JobId>,
}

impl Tally {
    /// Changes these jobs, a portion in each transaction, and passes the results of each portion to `each`.
    pub(super) fn change(
        &mut self,
        store: &dyn Store,
        verb: Verb,
        targets: Targets<'_>,
        by: &str,
        mut each: impl FnMut(PartialChange),
    ) -> Result<(), StoreError> {
        let chunk = if guards::is_off(Guard::Portions) { targets.len() } else { CHUNK };
        let mut at = 0;
        while at < targets.len() {
            let targets = targets.range(at..targets.len().min(at + chunk));
            let mut portion = store.change(verb, targets, by)?;
            at += portion.changes.len();
            self.add(verb, targets, &mut portion);
            if verb.is_order() && portion.changes.contains(&Change::Done(StateName::Processing)) {
                store.announce(Notice::Orders)?;
            }
            each(portion);
        }
        Ok(())
    }

    /// Makes the same edit to these jobs, a portion in each transaction.
    pub(super) fn edit(
        &mut self,
        store: &dyn Store,
        edit: &Edit,
        mut jobs: &[JobRef],
        by: &str,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), StoreError> {
        while !jobs.is_empty() {
            let portion = &jobs[..jobs.len().min(CHUNK)];
            let changes = store.edit_selected(portion, edit, by)?;
            let done = changes.iter().filter(|change| matches!(change, Change::Done(_))).count() as u64;
            self.done += done;
            self.skipped += changes.len() as u64 - done;
            progress(changes.len() as u64);
            jobs = &jobs[changes.len()..];
        }
        Ok(())
    }

    /// Waits up to [`CANCEL_WAIT_LIMIT`] for cancelled running jobs to end; most end sooner.
    pub(super) fn end(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        self.dependents = self.cancelled_with_parent.len() as u64;
        self.ending = wait_until_ended(store, &self.marked)?;
        Ok(())
    }

    fn add(&mut self, verb: Verb, targets: Targets<'_>, portion: &mut PartialChange) {
        self.cancelled_with_parent.extend(portion.dependents.iter().map(|dependent| dependent.id.clone()));
        self.leaves_dependents |= portion.leaves_dependents;
        for (at, change) in portion.changes.iter_mut().enumerate() {
            // A job that was cancelled with its parent, before its turn came, is changed as requested.
            let is_cancelled = *change == Change::Conflict(Conflict::State(StateName::Cancelled));
            if is_cancelled && self.cancelled_with_parent.remove(targets.id(at)) {
                *change = Change::Done(StateName::Cancelled);
            }
            match change {
                Change::NotFound | Change::Conflict(_) => {
                    self.skipped += 1;
                    continue;
                }
                Change::Done(StateName::Processing) if verb.is_cancel() => {
                    self.marked.push(targets.id(at).clone());
                }
                Change::Done(_) => {}
            }
            self.done += 1;
        }
    }
}

/// Deletes the log files of jobs that were removed by selection.
pub fn remove_orphaned_logs(store: &dyn Store, home: &Path) -> Result<(), StoreError> {
    retention::remove_orphaned_logs(store, &home.join(log::FOLDER))
}

/// Deletes the log files of jobs that were removed by id.
pub fn remove_logs<'a>(home: &Path, gone: impl Iterator<Item = &'a Job>) {
    for job in gone {
        retention::remove_logs(&home.join(log::FOLDER), job.number, job.life.attempts);
    }
}

/// Waits until the workers have ended these jobs; returns how many are still running after [`CANCEL_WAIT_LIMIT`].
fn wait_until_ended(store: &dyn Store, mut marked: &[JobId]) -> Result<u64, StoreError> {
    let is_running = |id| {
        let job = store.find(id)?;
        Ok::<_, StoreError>(job.is_some_and(|job| job.life.state.name() == StateName::Processing))
    };
    let mut poll = Poll::every(CANCEL_POLL_INTERVAL).within(CANCEL_WAIT_LIMIT);
    while let [first, rest @ ..] = marked {
        if !is_running(first)? {
            marked = rest;
        } else if !poll.sleep() {
            break;
        }
    }
    marked.iter().try_fold(0, |running, id| Ok(running + u64::from(is_running(id)?)))
}

/// The dependents that the worker cancelled after it killed the command.
fn cancelled_with(store: &dyn Store, job: &Job, began: Timestamp) -> Result<Vec<JobId>, StoreError> {
    if job.life.state.name() != StateName::Cancelled {
        return Ok(Vec::new());
    }
    let graph = store.graph(&job.id, MAX_DEPENDENTS_NAMED)?.unwrap_or_default();
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

/// Converts a store error that occurred after `done` jobs were changed.
pub(super) fn partly_done(done: u64, source: StoreError) -> OpError {
    if done == 0 { source.into() } else { OpError::PartlyDone { done, source } }
}

fn find_all(store: &dyn Store, ids: &[JobId]) -> Result<Vec<Option<Job>>, StoreError> {
    ids.iter().map(|id| store.find(id)).collect()
}

/// Refuses a job that is not dead, for the verbs of the dead-letter queue.
pub fn check_dead(job: &Job) -> Result<(), OpError> {
    let state = job.life.state.name();
    if state == StateName::Dead { Ok(()) } else { Err(OpError::NotDead { job: job.full_handle(), state }) }
}

/// All jobs that match a filter now, newest first. They are read in one query, because with pages each page would search
/// again from the start for states that few jobs are in. See [`super::bulk`] for more jobs than fit into memory.
pub fn select(store: &dyn Store, filter: &JobFilter) -> Result<Vec<JobRef>, StoreError> {
    store.select(filter, None, usize::MAX)
}

pub fn by_state(jobs: &[JobRef]) -> BTreeMap<StateName, u64> {
    let mut counts = BTreeMap::new();
    for seen in jobs {
        *counts.entry(seen.state).or_default() += 1;
    }
    counts
}
