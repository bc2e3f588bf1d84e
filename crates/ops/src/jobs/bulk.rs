//! Changing all jobs that match a filter, however many there are.
//!
//! The jobs are first selected in a read-only transaction, so that a slow search does not block writers. They are then
//! changed in chunks of one transaction each. A job whose state changed after it was selected is skipped and counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::time::Instant;

use super::change::{CANCEL_POLL_INTERVAL, CANCEL_WAIT_LIMIT, first_chunk};
use crate::OpError;
use domain::job::life::StateName;
use domain::log;
use domain::values::name::JobId;
use store::{
    Change, JobFilter, JobRef, JobVerb, Notice, PartialChange, Phase, Store, StoreError, Targets, retention,
};

/// The results for the selected jobs.
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
    /// The numbers of the removed jobs.
    removed: BTreeSet<u64>,
    /// Jobs that were cancelled with a job they depend on and have not been found among the selected ones yet.
    cancelled_with_parent: HashSet<JobId>,
}

impl Tally {
    fn note_dependents(&mut self, portion: &PartialChange) {
        self.cancelled_with_parent.extend(portion.dependents.iter().map(|dependent| dependent.id.clone()));
        self.leaves_dependents |= portion.leaves_dependents;
    }

    /// Counts a job whose state changed after it was selected. If it was cancelled with its parent, it counts as done.
    fn skip(&mut self, seen: &JobRef) {
        if self.cancelled_with_parent.remove(&seen.id) {
            self.done += 1;
        } else {
            self.skipped += 1;
        }
    }

    /// The remaining dependents were not among the selected jobs.
    fn settle_dependents(&mut self) {
        self.dependents = self.cancelled_with_parent.len() as u64;
        self.cancelled_with_parent.clear();
    }

    /// Deletes the log files of the removed jobs.
    pub fn remove_logs(&self, home: &Path) {
        if !self.removed.is_empty() {
            retention::remove_logs_of(&home.join(log::FOLDER), &self.removed);
        }
    }
}

/// The phases of jobs that a verb can change.
pub fn changeable(verb: JobVerb) -> &'static [Phase] {
    const CANCEL: [Phase; 6] = [
        Phase::State(StateName::Pending),
        Phase::State(StateName::Processing),
        Phase::State(StateName::Failed),
        Phase::Ready,
        Phase::Scheduled,
        Phase::Blocked,
    ];
    const RETRY: [Phase; 4] = [
        Phase::State(StateName::Failed),
        Phase::State(StateName::Dead),
        Phase::State(StateName::Cancelled),
        Phase::State(StateName::Completed),
    ];
    const REMOVE: [Phase; 8] = [
        Phase::State(StateName::Pending),
        Phase::State(StateName::Completed),
        Phase::State(StateName::Failed),
        Phase::State(StateName::Dead),
        Phase::State(StateName::Cancelled),
        Phase::Ready,
        Phase::Scheduled,
        Phase::Blocked,
    ];
    match verb {
        JobVerb::Cancel => &CANCEL,
        JobVerb::Retry => &RETRY,
        JobVerb::Remove => &REMOVE,
    }
}

/// The states that a verb applies to if the caller names none: all that it can change, except that completed jobs are
/// retried only on request.
pub fn default_phases(verb: JobVerb) -> Vec<Phase> {
    let is_default = |phase: &&Phase| match phase {
        Phase::State(state) => (verb, *state) != (JobVerb::Retry, StateName::Completed),
        Phase::Ready | Phase::Scheduled | Phase::Blocked => false,
    };
    changeable(verb).iter().filter(is_default).copied().collect()
}

/// All jobs that match a filter now, newest first. They are read in one query, because with pages each page would search
/// again from the start for states that few jobs are in.
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

/// Changes these jobs and calls `progress` with the size of each processed chunk.
pub fn change_selected(
    store: &dyn Store,
    verb: JobVerb,
    mut jobs: Vec<JobRef>,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<Tally, OpError> {
    if verb == JobVerb::Retry {
        // Retry parents before their dependents, so that the dependents wait for them again.
        jobs.reverse();
    }
    let mut tally = Tally::default();
    let mut marked = HashSet::new();
    let mut rest = &jobs[..];
    while !rest.is_empty() {
        let portion = store
            .change(verb, Targets::Selected(first_chunk(rest)), by)
            .map_err(|source| partly_done(tally.done, source))?;
        let (chunk, remaining) = rest.split_at(portion.changes.len());
        rest = remaining;
        tally.note_dependents(&portion);
        for (seen, change) in chunk.iter().zip(portion.changes) {
            match change {
                Change::Done(state) => {
                    tally.done += 1;
                    if verb == JobVerb::Cancel && state == StateName::Processing {
                        marked.insert(seen.number);
                    }
                    if verb == JobVerb::Remove {
                        tally.removed.insert(seen.number);
                    }
                }
                Change::NotFound | Change::Conflict(_) => tally.skip(seen),
            }
        }
        if !marked.is_empty() {
            store.announce(Notice::OrdersForAll).map_err(|source| partly_done(tally.done, source))?;
        }
        progress(chunk.len() as u64);
    }
    tally.settle_dependents();
    tally.ending = wait_until_ended(store, &marked).map_err(|source| partly_done(tally.done, source))?;
    Ok(tally)
}

/// Converts a store error that occurred after `done` jobs were changed.
pub(crate) fn partly_done(done: u64, source: StoreError) -> OpError {
    if done == 0 { source.into() } else { OpError::PartlyDone { done, source } }
}

/// Waits up to [`CANCEL_WAIT_LIMIT`] for the workers to end these jobs; returns how many are still running.
fn wait_until_ended(store: &dyn Store, marked: &HashSet<u64>) -> Result<u64, StoreError> {
    let began = Instant::now();
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    while !marked.is_empty() {
        let left = select(store, &running)?.iter().filter(|seen| marked.contains(&seen.number)).count();
        if left == 0 || began.elapsed() >= CANCEL_WAIT_LIMIT {
            return Ok(left as u64);
        }
        std::thread::sleep(CANCEL_POLL_INTERVAL);
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_phases_can_be_changed() {
        for verb in [JobVerb::Cancel, JobVerb::Retry, JobVerb::Remove] {
            let phases = default_phases(verb);
            assert!(!phases.is_empty());
            assert!(phases.iter().all(|phase| changeable(verb).contains(phase)), "{verb:?}: {phases:?}");
        }
        let retried: Vec<&str> = default_phases(JobVerb::Retry).into_iter().map(Phase::name).collect();
        assert_eq!(retried, ["failed", "dead", "cancelled"]);
    }
}
