//! Maintenance: pruning, export and import, edits of single jobs, and the event log.

pub(crate) mod added_migrations;
pub mod moving;

pub use moving::{MoveError, Relocation};

use std::collections::BTreeSet;
use std::mem;
use std::time::Duration;

use serde::Serialize;

use crate::rows::keys::{EnvironmentKey, JobSeq};
use crate::rows::tables::{duties, events};
use crate::rows::tx::{Effects, Tx};
use crate::rows::verbs::{environment_gc, prune};
use crate::rows::views::{recent_problems, starvation};
use crate::rows::{recount, transfer};
use crate::transfer::{ImportError, ImportRules, ImportSummary, Line};
use crate::{Contradiction, DerivedData, Hook, HotVerb, JobFilter, JobRef, Pause, Result, Store, StoreError};
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;

impl dyn Store + '_ {
    /// Exports the queue in one snapshot, until `sink` returns `false`. The sink cannot take lines back, so an export
    /// whose read would have to begin again fails.
    pub fn export(&self, which: &ExportScope<'_>, sink: &mut dyn FnMut(Line) -> bool) -> Result<()> {
        let mut has_begun = false;
        self.view(|tx| {
            if has_begun {
                return Err(StoreError::Changing);
            }
            transfer::export(tx, which, &mut |line| {
                has_begun = true;
                sink(line)
            })
        })
    }

    /// Imports exported lines, all or nothing. A job whose id is taken is refused, or skipped with [`ImportRules::if_absent`]. The lines
    /// can be read once, so an import that would have to begin again fails.
    pub fn import(
        &self,
        lines: &mut dyn Iterator<Item = Result<Line, ImportError>>,
        rules: ImportRules,
        by: &str,
    ) -> Result<ImportSummary, ImportError> {
        let mut has_begun = false;
        self.transact("import", |tx| {
            if mem::replace(&mut has_begun, true) {
                return Err(StoreError::Changing.into());
            }
            transfer::import(tx, lines, rules, by)
        })
    }

    /// One step of a retention pass: examines the next rows and deletes the expired ones.
    pub fn prune(&self, step: &PruneStep) -> Result<PruneResult> {
        let work = |tx: &mut Tx<'_>| prune::prune(tx, step);
        if step.dry_run { self.dry_run(work) } else { self.transact_hot(HotVerb::Prune(step), work) }
    }

    /// Deletes the selected jobs that are finished, still in the state in which they were selected, and no longer
    /// needed: no job waits for them, and they hold no unique key.
    pub fn prune_jobs(&self, jobs: &[JobRef], dry_run: bool) -> Result<PruneResult> {
        if dry_run {
            return Ok(self.dry_run(|tx| prune::prune_selected(tx, jobs, true))?.1);
        }
        let (mut rest, mut all) = (jobs, PruneResult::default());
        while !rest.is_empty() {
            let (examined, pruned) =
                self.transact("prune_jobs", |tx| prune::prune_selected(tx, rest, false))?;
            rest = &rest[examined..];
            all.count += pruned.count;
            all.gone.extend(pruned.gone);
        }
        Ok(all)
    }

    /// One step of the search for unused environments: examines the next `limit` jobs, and deletes as many
    /// environments. `false` if this was the last step.
    pub fn collect_environments(&self, gc: &mut EnvironmentGc, limit: usize) -> Result<bool> {
        // Scanning needs no write lock.
        let (scanned, is_last) = self.view(|tx| environment_gc::scan(tx, gc, limit))?;
        *gc = scanned;
        if is_last && !gc.is_over() {
            *gc = self.transact("environment_gc", |tx| environment_gc::delete_unused(tx, gc, limit))?;
        }
        Ok(!gc.is_over())
    }

    /// Those of these log files, by job number and attempt, whose job was deleted or whose attempt ended before this
    /// time.
    pub fn expired_logs(&self, files: &[(u64, u32)], before: Option<Timestamp>) -> Result<Vec<(u64, u32)>> {
        self.view(|tx| prune::expired_logs(tx, files, before))
    }

    /// Compares the derived data with the jobs, in one snapshot.
    pub fn recount(&self) -> Result<Vec<Contradiction>> {
        self.view(recount::find)
    }

    /// Rebuilds inconsistent derived data from the jobs, in short transactions. Workers may run meanwhile.
    pub fn repair(&self, found: &[Contradiction], by: &str) -> Result<()> {
        let derived: Vec<DerivedData> = found.iter().map(|found| found.derived.clone()).collect();
        let mut rest = &derived[..];
        while !rest.is_empty() {
            let repaired = self.transact("repair", |tx| recount::repair(tx, rest))?;
            rest = &rest[repaired..];
        }
        self.unblock_remaining(&mut Effects::default());
        self.note("repair", by, &format!("{} contradictions", found.len()))
    }

    /// A page of the event log, the oldest first.
    pub fn events(&self, page: &EventPage) -> Result<Vec<Event>> {
        self.view(|tx| events::list(tx, page))
    }

    /// Records an action that changes nothing in the store itself.
    pub fn note(&self, event: &str, by: &str, detail: &str) -> Result<()> {
        self.transact("note", |tx| events::record(tx, None, event, by, Some(detail)))
    }

    /// Whether a duty is due and no other worker performs it. If so, it belongs to the caller for the time of `lease`.
    pub fn take_duty(&self, duty: Duty, lease: Duration) -> Result<bool> {
        // Most callers come too early; they need not wait for other writers.
        if !self.view(|tx| duties::is_due(tx, duty))? {
            return Ok(false);
        }
        self.transact("take_duty", |tx| duties::take(tx, duty, lease))
    }

    /// Ends a duty until it is due again, and records the result.
    pub fn end_duty(&self, duty: Duty, next: Duration, by: &str, done: Option<&str>) -> Result<()> {
        self.transact("end_duty", |tx| duties::end(tx, duty, next, by, done))
    }

    /// Recent problems: jobs that died, schedules that were missed, hooks that fail.
    pub fn recent_problems(&self, died_since: Timestamp, missed_since: Timestamp) -> Result<RecentProblems> {
        self.view(|tx| recent_problems::recent_problems(tx, died_since, missed_since))
    }

    /// One job of each queue that jobs with a higher priority have overtaken since before this time, and since when it
    /// could run.
    pub fn starved(&self, before: Timestamp) -> Result<Vec<(Job, Timestamp)>> {
        self.view(|tx| starvation::starved(tx, before))
    }

    /// The newest stop order.
    pub fn last_stop(&self) -> Result<Option<LastStop>> {
        self.view(recent_problems::last_stop)
    }
}

/// The scope of an export.
#[derive(Clone, Copy, Debug)]
pub enum ExportScope<'a> {
    All,
    /// These jobs and what they need: their queues, environments and batches.
    Ids(&'a [JobId]),
    /// The same for the jobs that match a filter.
    Kind(&'a JobFilter),
}

/// An entry of the event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its position in the event log.
    #[serde(skip)]
    pub number: u64,
    pub at: Timestamp,
    pub event: String,
    pub by: String,
    pub job: Option<JobId>,
    pub detail: Option<String>,
}

/// Selects a page of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    pub range: EventRange,
    pub limit: usize,
    /// Only events of this job.
    pub job: Option<JobId>,
}

/// The range of a page of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRange {
    /// The events directly after this number.
    After(u64),
    /// The events directly before this number.
    Before(u64),
}

domain::named_enum! {
    /// Work that one worker does for all from time to time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Duty {
        Prune = "prune",
        Sample = "sample",
    }
}

/// A kind of rows that can be pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prunable {
    /// Finished jobs in this state, by their finish time. A job that others wait for is kept, and one that still holds
    /// its unique key.
    ///
    /// Without dead jobs whose end `run` has reported: see `ReportedJobs`.
    Jobs(StateName),
    /// Dead jobs whose end `run` has reported to its caller.
    ReportedJobs,
    /// Stored outputs of attempts, by the time at which the attempt ended.
    Outputs,
    /// Entries of the event log.
    Events,
    /// Rows of the history behind metrics, which become part of coarser rows, and after this time of the totals. No number
    /// is lost, so they are not counted.
    Minutes { retain: Option<Duration> },
    /// Rows without any use: workers that stopped before the oldest remaining job, and expired unique keys.
    StaleRows,
    /// Space that deleted rows left; `limit` units of it are returned to the system.
    Space,
}

/// One step of a retention pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneStep {
    pub what: Prunable,
    pub before: Timestamp,
    /// Where the previous step stopped; the default is the beginning.
    pub after: Cursor,
    /// How many rows to examine.
    pub limit: usize,
    /// Only count what would be deleted.
    pub dry_run: bool,
}

/// A position in a scan: a row number, and an attempt if the rows have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub u64, pub u32);

/// A search for environments that nothing refers to. An index would burden every enqueue, so the search scans all jobs
/// instead, the oldest first, and removes every environment that it finds in use from the candidates. Jobs that are
/// enqueued meanwhile come at the end of the scan; the transaction that finds no more jobs deletes the remaining
/// candidates.
#[derive(Clone, Debug, Default)]
pub struct EnvironmentGc {
    /// The environments not found in use so far; `None` before the first step.
    pub candidates: Option<BTreeSet<EnvironmentKey>>,
    /// The last job that was examined.
    pub after: JobSeq,
    /// How many environments were deleted.
    pub deleted: u64,
}

impl EnvironmentGc {
    /// Whether no candidate is left.
    pub fn is_over(&self) -> bool {
        self.candidates.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

/// The result of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PruneResult {
    pub count: u64,
    /// The deleted jobs by number, with their number of attempts, so that their log files can be deleted too.
    pub gone: Vec<(u64, u32)>,
    /// Where the next step begins; `None` after the last.
    pub next: Option<Cursor>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentProblems {
    /// How many of the newest dead jobs died recently, counted up to [`MAX_DEATHS_COUNTED`].
    pub deaths: u64,
    /// Schedules whose last occurrence was missed or is overdue, and when that was.
    pub missed: Vec<(String, Timestamp)>,
    /// Schedules whose last occurrence was skipped because too many runs are unfinished, and when that was.
    pub full: Vec<(String, Timestamp)>,
    /// Paused schedules.
    pub paused: Vec<(String, Pause)>,
    /// How many schedules have a next occurrence and are not paused.
    pub active: u64,
    /// All hooks.
    pub hooks: Vec<Hook>,
}

/// The newest stop order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastStop {
    pub at: Timestamp,
    pub by: String,
    /// The home whose workers it addresses, or the one worker; `None` for all.
    pub home_id: Option<String>,
}

/// Deaths are counted up to this number, so that the answer comes at once.
pub const MAX_DEATHS_COUNTED: u64 = 200;
