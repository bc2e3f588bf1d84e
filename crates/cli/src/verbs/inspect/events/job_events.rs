//! What happens to jobs by itself: they are enqueued, and their attempts start and end.
//!
//! Nothing is recorded for this: enqueued jobs are read from the store, by their numbers, and attempts from the journal
//! of the workers of this home.

use std::path::Path;

use super::entry::Entry;
use crate::context::Context;
use crate::failure::Failure;
use domain::job::Job;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use engine::{AttemptFilter, AttemptJournal};
use store::{JobFilter, Page, Store};

/// How many enqueued jobs one poll shows.
const MAX_ENQUEUED: usize = 1_000;

pub(super) struct JobEvents<'a> {
    context: &'a Context,
    store: &'a dyn Store,
    journal: AttemptJournal,
    /// The number of the newest job that was shown.
    newest: u64,
    job: Option<JobId>,
}

impl<'a> JobEvents<'a> {
    pub(super) fn open(
        context: &'a Context,
        store: &'a dyn Store,
        home: &Path,
        job: Option<&JobId>,
    ) -> Result<Self, Failure> {
        let journal = AttemptJournal::open(home)?;
        let newest = newest_jobs(store, 1)?.first().map_or(0, |job| job.number);
        Ok(Self { context, store, journal, newest, job: job.cloned() })
    }

    /// The latest ones, at most `limit` of each kind, not older than `since`.
    pub(super) fn latest(&self, since: Option<Timestamp>, limit: usize) -> Result<Vec<Entry>, Failure> {
        let filter = AttemptFilter { job: self.job.as_ref(), since };
        let (attempts, is_cut) = self.journal.latest(filter, limit)?;
        if is_cut {
            self.context.hint("for older attempts, see worker.log and worker.log.DAY in the home")?;
        }
        let is_recent = |job: &Job| since.is_none_or(|since| job.created_at >= since);
        let enqueued = match &self.job {
            Some(id) => self.store.find(id)?.into_iter().collect(),
            None => newest_jobs(self.store, limit.min(MAX_ENQUEUED))?,
        };
        let enqueued =
            enqueued.iter().rev().filter(|job| job.number <= self.newest && is_recent(job)).map(Entry::from);
        Ok(attempts.into_iter().map(Entry::from).chain(enqueued).collect())
    }

    /// New ones.
    pub(super) fn poll(&mut self) -> Result<Vec<Entry>, Failure> {
        let mut entries = self.enqueued()?;
        let filter = AttemptFilter { job: self.job.as_ref(), since: None };
        entries.extend(self.journal.poll(filter)?.into_iter().map(Entry::from));
        Ok(entries)
    }

    fn enqueued(&mut self) -> Result<Vec<Entry>, Failure> {
        if self.job.is_some() {
            return Ok(Vec::new());
        }
        let newest = newest_jobs(self.store, 1)?.first().map_or(0, |job| job.number);
        if newest <= self.newest {
            return Ok(Vec::new());
        }
        let jobs = newest_jobs(self.store, MAX_ENQUEUED)?;
        let last = std::mem::replace(&mut self.newest, jobs.first().map_or(newest, |job| job.number));
        if let Some(oldest) =
            jobs.last().filter(|oldest| jobs.len() == MAX_ENQUEUED && oldest.number > last + 1)
        {
            let count = oldest.number - last - 1;
            self.context.hint(&format!("{count} more jobs were enqueued before these"))?;
        }
        Ok(jobs.iter().rev().filter(|job| job.number > last).map(Entry::from).collect())
    }
}

fn newest_jobs(store: &dyn Store, limit: usize) -> Result<Vec<Job>, Failure> {
    Ok(store.list(&JobFilter::default(), &Page { limit, after: None })?)
}
