//! Upkeep: pruning, copies of the whole, changes to single jobs, and what people did.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::transfer::{ImportError, Imported, Line};
use super::{Change, Contradiction, JobFilter, Seen, StoreError};
use domain::explain::{Count, Durations, QueueFacts};
use domain::job::Job;
use domain::job::edit::Edit;
use domain::job::life::StateName;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use sys::process::Holder;

pub trait Upkeep {
    /// Copies the whole queue into one file, as it is at one moment, while others go on working.
    fn backup(&self, backup: &Backup<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), StoreError>;
    /// Puts the log files of a restore in their place that was killed after its commit. To be called before they are read or
    /// written; it costs a look into the folder.
    fn finish_restore(&self, logs: &Path) -> Result<(), StoreError>;
    /// Tells what is in the queue, as it is at one moment, until `sink` says that it wants no more.
    fn export(&self, which: &Exported<'_>, sink: &mut dyn FnMut(Line) -> bool) -> Result<(), StoreError>;
    /// Takes in what was exported, all of it or nothing. A job whose id is taken is refused, or skipped with `if_absent`.
    fn import(
        &self,
        lines: &mut dyn Iterator<Item = Result<Line, ImportError>>,
        if_absent: bool,
        by: &str,
    ) -> Result<Imported, ImportError>;
    /// One step on the way through what may be old: forgets, of the next `limit` rows, those that are.
    fn prune(&self, prune: &Prune) -> Result<Pruned, StoreError>;
    /// Forgets those of these jobs that are still as they were seen, are finished, and that nobody has use for: no job
    /// waits for them, and they hold no unique key.
    fn forget(&self, jobs: &[Seen], dry_run: bool) -> Result<Pruned, StoreError>;
    /// One step on the way to environments that nothing uses: looks at the next `limit` jobs, and forgets as many. `false`:
    /// this was the last.
    fn sweep(&self, sweep: &mut Sweep, limit: usize) -> Result<bool, StoreError>;
    /// Those of these log files, by job number and attempt, whose job is gone, or whose attempt ended before a moment.
    fn expired_logs(
        &self,
        files: &[(u64, u32)],
        before: Option<Timestamp>,
    ) -> Result<Vec<(u64, u32)>, StoreError>;
    /// Compares what the store keeps beside the jobs with the jobs, as of one moment.
    fn recount(&self) -> Result<Vec<Contradiction>, StoreError>;
    /// Makes what was found wrong anew from the jobs, in short transactions. Workers may be at work meanwhile.
    fn mend(&self, found: &[Contradiction], by: &str) -> Result<(), StoreError>;
    /// Changes a job that does not run.
    fn edit(&self, id: &JobId, edit: &Edit, by: &str) -> Result<Change, StoreError>;
    /// The same, and makes it pending again, with fresh retries. Both or nothing.
    fn edit_and_retry(&self, id: &JobId, edit: &Edit, by: &str) -> Result<Change, StoreError>;
    /// A job with what surrounds it, as of one moment.
    fn situation(&self, id: &JobId) -> Result<Option<Situation>, StoreError>;
    /// What people and workers did: a stretch of it, the oldest first.
    fn events(&self, page: &EventPage) -> Result<Vec<Event>, StoreError>;
    /// Notes what somebody did that changes nothing in the store itself.
    fn note(&self, event: &str, by: &str, detail: &str) -> Result<(), StoreError>;
    /// Who is writing now, where that can be seen.
    fn writer(&self) -> Option<Holder>;
    /// Whether it is time for a duty that one does for all, and nobody else does it. Then it is the caller's for the
    /// time of `lease`.
    fn take_duty(&self, duty: Duty, lease: Duration) -> Result<bool, StoreError>;
    /// Says that a duty is done for now, and what was done.
    fn end_duty(&self, duty: Duty, next: Duration, by: &str, done: Option<&str>) -> Result<(), StoreError>;
}

/// What is exported.
#[derive(Clone, Copy, Debug)]
pub enum Exported<'a> {
    /// Everything.
    All,
    /// These jobs and what they cannot do without: their queues, environments and batches.
    Ids(&'a [JobId]),
    /// The same by what they are.
    Kind(&'a JobFilter),
}

/// What decides why a job does not run now.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    pub job: Job,
    pub now: Timestamp,
    /// Some of the jobs that it waits for.
    pub waits_for: Vec<(JobId, StateName)>,
    pub queue: QueueFacts,
    /// Jobs that are ready and come before it: in its queue, and those in others that their queue does not hold back.
    pub ahead_in_queue: Count,
    pub ahead_elsewhere: Count,
    pub durations: Option<Durations>,
}

/// Something that somebody did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its place in the order of events.
    pub number: u64,
    pub at: Timestamp,
    pub event: String,
    pub by: String,
    pub job: Option<JobId>,
    pub detail: Option<String>,
}

/// Which events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    pub stretch: Stretch,
    pub limit: usize,
    /// Only what was done to this job.
    pub job: Option<JobId>,
}

/// Where a stretch of events lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// Those right behind this number.
    After(u64),
    /// Those right before this number.
    Before(u64),
}

/// Something that one worker does for all, now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    Prune,
}

impl Duty {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prune => "prune",
        }
    }
}

/// What can be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// Finished jobs in this state, by when they ended. One that others wait for is kept, and one that still holds its
    /// unique key.
    Jobs(StateName),
    /// Output that is stored with attempts, by when they ended.
    Outputs,
    /// What people and workers did.
    Events,
    /// What has no use any more: rows of workers that stopped before the oldest job that is kept, and unique keys whose
    /// time is over.
    Remains,
    /// Space in the file that nothing uses: `limit` pages are given back.
    Space,
}

/// A step on the way through what may be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    pub what: Old,
    pub before: Timestamp,
    /// Where the last step stopped; the default is the beginning.
    pub after: Mark,
    /// How many rows to look at.
    pub limit: usize,
    /// Only count what would be forgotten.
    pub dry_run: bool,
}

/// A place on the way: a number, and an attempt where there are some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(pub u64, pub u32);

/// A search for environments that nothing uses. There is no index for it, so that enqueuing need not keep one: all jobs are
/// walked along, the oldest first, and what is found in use is crossed off. Those that come meanwhile come at the end, where
/// the walk gets to them too; the rest is forgotten in the same transaction that finds no more jobs.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Those that were not found in use so far. `None`: nobody has looked yet which there are.
    pub unseen: Option<BTreeSet<i64>>,
    /// The last job that was looked at.
    pub after: i64,
    /// How many are gone.
    pub forgotten: u64,
}

impl Sweep {
    /// Whether none is left that could be unused.
    pub fn is_over(&self) -> bool {
        self.unseen.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

/// What came of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub count: u64,
    /// The jobs that are gone, by number, with the number of their attempts: their log files can go too.
    pub gone: Vec<(u64, u32)>,
    /// Where to go on; `None`: this was the end.
    pub next: Option<Mark>,
}

/// Where a backup goes, and what belongs to it beside the database.
#[derive(Clone, Copy, Debug)]
pub struct Backup<'a> {
    /// An empty file.
    pub to: &'a Path,
    /// The folder of log files.
    pub logs: &'a Path,
}

/// How far something is that takes long, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// What a backup that was put in the place of a queue held, and what became of that queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    pub jobs: u64,
    /// Attempts that were running when the backup was made.
    pub lost: u64,
    /// Where the queue is that was there before, if it held anything.
    pub kept: Option<PathBuf>,
}

/// Why a backup was not put in the place of a queue.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("workers are running ({count})")]
    Workers { count: usize },
    #[error("another restore is under way")]
    UnderWay,
    /// What was to be restored cannot be used.
    #[error("the backup `{}` cannot be used, and nothing was changed", path.display())]
    BadBackup {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
}
