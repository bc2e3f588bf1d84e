//! Changing all jobs that are of a kind, however many.
//!
//! First they are selected, by reading only, so that a slow search is in nobody's way. Then they are changed in chunks, each
//! one transaction; a job that has moved on since it was selected is left alone and counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::time::Instant;

use super::change::{CANCEL_LOOK, CANCEL_PATIENCE, CHUNK};
use super::{OpError, announce};
use crate::domain::life::StateName;
use crate::domain::log;
use crate::store::{Change, JobFilter, JobVerb, Phase, Seen, Store, StoreError, retention};

/// What became of the jobs that were selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    /// They had moved on, or others wait for them.
    pub skipped: u64,
    /// Of those that are done: their workers are still ending them.
    pub ending: u64,
    /// The numbers of those that were removed.
    gone: BTreeSet<u64>,
}

impl Tally {
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

/// All jobs that a filter lets through now, the newest first.
pub fn select(store: &dyn Store, filter: &JobFilter) -> Result<Vec<Seen>, StoreError> {
    let mut selected: Vec<Seen> = Vec::new();
    loop {
        let below = selected.last().map(|seen| seen.number);
        let more = store.select(filter, below, CHUNK)?;
        if more.is_empty() {
            return Ok(selected);
        }
        selected.extend(more);
    }
}

pub fn by_state(jobs: &[Seen]) -> BTreeMap<StateName, u64> {
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
    mut jobs: Vec<Seen>,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<Tally, OpError> {
    if verb == JobVerb::Retry {
        // Those that others depend on first, so that these wait for them again.
        jobs.reverse();
    }
    let mut tally = Tally::default();
    let mut marked = HashSet::new();
    for chunk in jobs.chunks(CHUNK) {
        let changes = store.change(verb, chunk, by).map_err(|source| half_done(tally.done, source))?;
        for (seen, change) in chunk.iter().zip(changes) {
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
                Change::NotFound | Change::Conflict(_) => tally.skipped += 1,
            }
        }
        if !marked.is_empty() {
            announce::to_all(store)?;
        }
        progress(chunk.len() as u64);
    }
    tally.ending = wait_for_ends(store, &marked)?;
    Ok(tally)
}

fn half_done(done: u64, source: StoreError) -> OpError {
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
