//! Changing all jobs that match a filter, however many there are.
//!
//! The jobs are found and changed window by window, so that never more than one window of ids is in memory, no reader holds
//! up a writer, and a caller can stop in between. A window covers a range of numbers. Jobs that are enqueued after the
//! change began are left alone.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::change::{Tally, Verb, partly_done};
use crate::OpError;
use domain::job::edit::{Edit, EditError};
use domain::job::life::StateName;
use domain::values::name::JobId;
use store::{Change, Conflict, JobFilter, JobRef, Phase, Store, StoreError, Targets};

/// How many numbers a window covers.
const WINDOW: u64 = 10_000;

/// What is done to each job.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkChange {
    Verb(Verb),
    /// See [`edit_many`].
    Edit(Box<Edit>),
}

impl From<Verb> for BulkChange {
    fn from(verb: Verb) -> Self {
        Self::Verb(verb)
    }
}

impl BulkChange {
    fn is_retry(&self) -> bool {
        match self {
            Self::Verb(verb) => verb.is_retry(),
            Self::Edit(_) => false,
        }
    }

    /// Whether jobs in this state can be changed so.
    pub fn applies_to(&self, state: StateName) -> bool {
        match self {
            Self::Verb(verb) => verb.applies_to(state),
            Self::Edit(_) => !matches!(state, StateName::Processing | StateName::Completed),
        }
    }

    /// The phases of jobs that can be changed so.
    pub fn changeable(&self) -> impl Iterator<Item = Phase> + '_ {
        Phase::ALL.into_iter().filter(|phase| self.applies_to(phase.state()))
    }

    /// The phases that it applies to if the caller names none: all that it can change, except that completed jobs are
    /// retried only on request.
    pub fn default_phases(&self) -> Vec<Phase> {
        if *self == Self::Verb(Verb::Resume) {
            return vec![Phase::Paused];
        }
        let is_default = |state: &StateName| {
            self.applies_to(*state) && !(self.is_retry() && *state == StateName::Completed)
        };
        StateName::ALL.into_iter().filter(is_default).map(Phase::State).collect()
    }
}

/// An edit for many jobs. What describes a single job cannot be given to all of them.
pub fn edit_many(edit: Edit) -> Result<BulkChange, OpError> {
    if edit.is_empty() {
        return Err(EditError::Nothing.into());
    }
    if edit.set.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(OpError::RelativeFolder);
    }
    match edit.fields().into_iter().find(|field| matches!(*field, "command" | "name")) {
        Some(field) => Err(OpError::OnlyForOneJob(field)),
        None => Ok(BulkChange::Edit(Box::new(edit))),
    }
}

/// Changes all jobs that match now. `progress` is called with the number of jobs in each portion; `is_stopped` is asked
/// before each window, and ends the change early.
pub fn bulk(
    store: &dyn Store,
    change: impl Into<BulkChange>,
    filter: &JobFilter,
    by: &str,
    mut progress: impl FnMut(u64),
    is_stopped: impl Fn() -> bool,
) -> Result<Tally, OpError> {
    let mut bulk = Bulk::new(change.into(), by);
    for window in windows(bulk.what.is_retry(), store.newest_number()?) {
        if is_stopped() {
            bulk.tally.was_stopped = true;
            break;
        }
        let changed = store
            .select_within(filter, &window, usize::MAX)
            .and_then(|jobs| bulk.change(store, jobs, &mut progress));
        changed.map_err(|source| partly_done(bulk.tally.done, source))?;
    }
    bulk.end(store)
}

/// Changes these jobs, which are in the order of a selection: from new to old.
pub fn change_selected(
    store: &dyn Store,
    change: impl Into<BulkChange>,
    jobs: Vec<JobRef>,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<Tally, OpError> {
    let mut bulk = Bulk::new(change.into(), by);
    let changed = bulk.change(store, jobs, &mut progress);
    changed.map_err(|source| partly_done(bulk.tally.done, source))?;
    bulk.end(store)
}

/// The windows up to this number. Parents come before their dependents if these are to wait for them again; otherwise the
/// newest jobs come first, so that a job which is cancelled has no dependents left.
fn windows(is_retry: bool, newest: u64) -> Box<dyn Iterator<Item = Range<u64>>> {
    let window = move |at: u64| at * WINDOW + 1..((at + 1) * WINDOW).min(newest) + 1;
    let windows = (0..newest.div_ceil(WINDOW)).map(window);
    if is_retry { Box::new(windows) } else { Box::new(windows.rev()) }
}

struct Bulk<'a> {
    what: BulkChange,
    by: &'a str,
    tally: Tally,
    order: RetryOrder,
}

impl<'a> Bulk<'a> {
    fn new(what: BulkChange, by: &'a str) -> Self {
        Self { what, by, tally: Tally::default(), order: RetryOrder::default() }
    }

    fn change(
        &mut self,
        store: &dyn Store,
        jobs: Vec<JobRef>,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), StoreError> {
        match &self.what {
            BulkChange::Edit(edit) => self.tally.edit(store, edit, &jobs, self.by, progress),
            BulkChange::Verb(verb) if verb.is_retry() => self.retry(store, *verb, jobs, progress),
            BulkChange::Verb(verb) => {
                self.tally.change(store, *verb, Targets::Selected(&jobs), self.by, |portion| {
                    progress(portion.changes.len() as u64);
                })
            }
        }
    }

    fn retry(
        &mut self,
        store: &dyn Store,
        verb: Verb,
        mut jobs: Vec<JobRef>,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), StoreError> {
        jobs.reverse();
        while !jobs.is_empty() {
            let mut changes = Vec::with_capacity(jobs.len());
            self.tally.change(store, verb, Targets::Selected(&jobs), self.by, |portion| {
                progress(portion.changes.len() as u64);
                changes.extend(portion.changes);
            })?;
            let mut next = Vec::new();
            for (job, change) in jobs.iter().zip(&changes) {
                next.extend(self.order.after(store, job, change)?);
            }
            self.tally.skipped = self.tally.skipped.saturating_sub(next.len() as u64);
            jobs = next;
        }
        Ok(())
    }

    fn end(mut self, store: &dyn Store) -> Result<Tally, OpError> {
        match self.tally.end(store) {
            Ok(()) => Ok(self.tally),
            Err(source) => Err(partly_done(self.tally.done, source)),
        }
    }
}

/// Selected jobs that were refused because of a dependency whose turn comes later: it was enqueued after them, or waits
/// itself for one that was.
#[derive(Debug, Default)]
struct RetryOrder {
    /// The highest number whose turn has come.
    reached: u64,
    /// By the dependency.
    refused: HashMap<JobId, Vec<JobRef>>,
    waiting: HashSet<JobId>,
}

impl RetryOrder {
    /// The jobs to try again after this result. One whose dependency was retried and has failed again is not among them.
    fn after(&mut self, store: &dyn Store, job: &JobRef, change: &Change) -> Result<Vec<JobRef>, StoreError> {
        self.reached = self.reached.max(job.number);
        match change {
            Change::Done(_) => {
                self.waiting.remove(&job.id);
                return Ok(self.refused.remove(&job.id).unwrap_or_default());
            }
            Change::Conflict(Conflict::DependencyFailed { dependency, .. }) => {
                if self.comes_later(store, dependency)? {
                    self.waiting.insert(job.id.clone());
                    self.refused.entry(dependency.clone()).or_default().push(job.clone());
                } else {
                    self.waiting.remove(&job.id);
                }
            }
            Change::Conflict(_) | Change::NotFound => {
                self.waiting.remove(&job.id);
            }
        }
        Ok(Vec::new())
    }

    fn comes_later(&self, store: &dyn Store, dependency: &JobId) -> Result<bool, StoreError> {
        if self.waiting.contains(dependency) {
            return Ok(true);
        }
        let number = store.summary(dependency)?.map(|summary| summary.number);
        Ok(number.is_some_and(|number| number > self.reached))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_every_number_once() {
        for newest in [0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 7] {
            for is_retry in [true, false] {
                let mut windows: Vec<Range<u64>> = windows(is_retry, newest).collect();
                let is_rising = windows.is_sorted_by_key(|window| window.start);
                assert!(windows.len() < 2 || is_rising == is_retry, "{is_retry}: {windows:?}");
                windows.sort_unstable_by_key(|window| window.start);
                let covered: u64 = windows.iter().map(|window| window.end - window.start).sum();
                assert_eq!(covered, newest);
                assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start), "{windows:?}");
                assert_eq!(windows.last().map_or(0, |last| last.end - 1), newest);
            }
        }
    }

    #[test]
    fn default_phases_can_be_changed() {
        let edit = edit_many(Edit { reset: vec!["priority"], ..Edit::default() }).expect("an edit");
        let verbs = [Verb::CANCEL, Verb::Pause, Verb::Resume, Verb::Retry, Verb::Remove];
        for change in verbs.into_iter().map(BulkChange::from).chain([edit.clone()]) {
            let phases = change.default_phases();
            assert!(!phases.is_empty());
            let is_able = |phase: &Phase| change.changeable().any(|able| able == *phase);
            assert!(phases.iter().all(is_able), "{change:?}: {phases:?}");
        }
        let names =
            |change: &BulkChange| change.default_phases().into_iter().map(Phase::name).collect::<Vec<_>>();
        assert_eq!(names(&Verb::Retry.into()), ["failed", "dead", "cancelled"]);
        assert_eq!(names(&edit), ["pending", "failed", "dead", "cancelled"]);
    }

    #[test]
    fn what_describes_one_job_is_not_given_to_many() {
        for field in ["command", "name"] {
            let edit = Edit { reset: vec![field], ..Edit::default() };
            assert!(matches!(edit_many(edit), Err(OpError::OnlyForOneJob(name)) if name == field));
        }
        assert!(matches!(edit_many(Edit::default()), Err(OpError::Edit(EditError::Nothing))));
    }
}
