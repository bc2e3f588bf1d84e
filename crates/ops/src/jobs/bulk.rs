//! Changing all jobs that are of a kind, however many.
//!
//! First they are selected, by reading only, so that a slow search is in nobody's way. Then they are changed in chunks, each
//! one transaction; a job that has moved on since it was selected is left alone and counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::time::Instant;

use super::change::{CANCEL_LOOK, CANCEL_PATIENCE, first};
use crate::OpError;
use crate::worker::announce;
use domain::job::life::StateName;
use domain::log;
use domain::values::name::JobId;
use store::{Change, JobFilter, JobRef, JobVerb, Phase, Portion, Store, StoreError, retention};

/// What became of the jobs that were selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    /// They had moved on, or others wait for them.
    pub skipped: u64,
    /// Jobs beside those that were selected: they depend on one that was cancelled, and were cancelled with it.
    pub dependents: u64,
    /// The workers are cancelling more of them.
    pub leaves_dependents: bool,
    /// Of those that are done: their workers are still ending them.
    pub ending: u64,
    /// The numbers of those that were removed.
    gone: BTreeSet<u64>,
    /// Those that were cancelled with a job that they depend on, and not yet met among the selected.
    with_others: HashSet<JobId>,
}

impl Tally {
    fn note_dependents(&mut self, portion: &Portion) {
        self.with_others.extend(portion.dependents.iter().map(|dependent| dependent.id.clone()));
        self.leaves_dependents |= portion.leaves_dependents;
    }

    /// One that is no longer as it was selected. If it was cancelled with another, then what was wanted is done.
    fn skip(&mut self, seen: &JobRef) {
        if self.with_others.remove(&seen.id) {
            self.done += 1;
        } else {
            self.skipped += 1;
        }
    }

    /// Those that are left were not among the selected.
    fn settle_dependents(&mut self) {
        self.dependents = self.with_others.len() as u64;
        self.with_others.clear();
    }

    /// Removes the log files of the jobs that are gone.
    pub fn remove_logs(&self, home: &Path) {
        if !self.gone.is_empty() {
            retention::remove_logs_of(&home.join(log::FOLDER), &self.gone);
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

/// The states that are meant where somebody names none: all that the verb can change, but what has succeeded is run again
/// only if that is what somebody says.
pub fn meant_by_default(verb: JobVerb) -> Vec<Phase> {
    let is_meant = |phase: &&Phase| match phase {
        Phase::State(state) => (verb, *state) != (JobVerb::Retry, StateName::Completed),
        Phase::Ready | Phase::Scheduled | Phase::Blocked => false,
    };
    changeable(verb).iter().filter(is_meant).copied().collect()
}

/// All jobs that a filter lets through now, the newest first: in one look, because each page would begin anew to look for
/// states of which there are few.
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

/// Changes these, and tells `progress` how many more were looked at.
pub fn change_selected(
    store: &dyn Store,
    verb: JobVerb,
    mut jobs: Vec<JobRef>,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<Tally, OpError> {
    if verb == JobVerb::Retry {
        // Those that others depend on first, so that these wait for them again.
        jobs.reverse();
    }
    let mut tally = Tally::default();
    let mut marked = HashSet::new();
    let mut rest = &jobs[..];
    while !rest.is_empty() {
        let portion = store.change(verb, first(rest), by).map_err(|source| half_done(tally.done, source))?;
        let (chunk, behind) = rest.split_at(portion.changes.len());
        rest = behind;
        tally.note_dependents(&portion);
        for (seen, change) in chunk.iter().zip(portion.changes) {
            match change {
                Change::Done(state) => {
                    tally.done += 1;
                    if verb == JobVerb::Cancel && state == StateName::Processing {
                        marked.insert(seen.number);
                    }
                    if verb == JobVerb::Remove {
                        tally.gone.insert(seen.number);
                    }
                }
                Change::NotFound | Change::Conflict(_) => tally.skip(seen),
            }
        }
        if !marked.is_empty() {
            announce::to_all(store).map_err(|source| half_done(tally.done, source))?;
        }
        progress(chunk.len() as u64);
    }
    tally.settle_dependents();
    tally.ending = wait_for_ends(store, &marked).map_err(|source| half_done(tally.done, source))?;
    Ok(tally)
}

/// An error of the store, after this many jobs were changed.
pub(crate) fn half_done(done: u64, source: StoreError) -> OpError {
    if done == 0 { source.into() } else { OpError::HalfDone { done, source } }
}

/// Gives the workers a moment to end what they run; says how many they have not ended by then.
fn wait_for_ends(store: &dyn Store, marked: &HashSet<u64>) -> Result<u64, StoreError> {
    let began = Instant::now();
    let running = JobFilter::in_phase(Phase::State(StateName::Processing));
    while !marked.is_empty() {
        let left = select(store, &running)?.iter().filter(|seen| marked.contains(&seen.number)).count();
        if left == 0 || began.elapsed() >= CANCEL_PATIENCE {
            return Ok(left as u64);
        }
        std::thread::sleep(CANCEL_LOOK);
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_can_be_changed() {
        for verb in [JobVerb::Cancel, JobVerb::Retry, JobVerb::Remove] {
            let meant = meant_by_default(verb);
            assert!(!meant.is_empty());
            assert!(meant.iter().all(|phase| changeable(verb).contains(phase)), "{verb:?}: {meant:?}");
        }
        let retried: Vec<&str> = meant_by_default(JobVerb::Retry).into_iter().map(Phase::name).collect();
        assert_eq!(retried, ["failed", "dead", "cancelled"]);
    }
}
