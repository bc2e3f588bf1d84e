//! Listing jobs. The store is read in pages, so that memory is bounded however long the list is.
//!
//! Each page is a separate snapshot. In the order of enqueuing no job is listed twice, regardless of concurrent changes; a
//! job that changes meanwhile may be listed before or after the change, or omitted if it no longer matches the filter.

use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;
use std::str::FromStr;

use domain::job::Job;
use domain::text::nearest::suggestion;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{JobFilter, JobRef, Page, PageStart, Store, StoreError};

/// How many jobs a page contains.
const CHUNK: usize = 1_000;

/// The sort key and direction.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    value: SortValue,
    descending: bool,
}

/// The value of a job to sort by; `None` if it has no such value.
type SortValue = fn(&Job) -> Option<Value>;

/// The sort keys.
const KEYS: [(&str, SortValue); 12] = [
    ("created", |job| i64::try_from(job.number).ok().map(Value::Number)),
    ("updated", |job| time(Some(job.updated_at))),
    ("priority", |job| Some(Value::Number(job.priority.into()))),
    ("run_at", |job| time(job.life.run_at)),
    ("started", |job| time(job.latest.started_at)),
    ("finished", |job| time(job.life.state.finished_at())),
    ("attempts", |job| Some(Value::Number(job.life.attempts.into()))),
    ("failures", |job| Some(Value::Number(job.life.failures.into()))),
    ("queue", |job| Some(text(job.queue.as_str()))),
    ("state", |job| Some(text(job.life.state.name().name()))),
    ("id", |job| Some(text(job.id.as_str()))),
    ("command", |job| Some(text(&job.command))),
];

fn time(at: Option<Timestamp>) -> Option<Value> {
    at.map(|at| Value::Number(at.as_millis()))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("jobs cannot be sorted by `{typed}`; {}", suggestion(typed, "sort keys", &KEYS.map(|(name, _)| name)))]
pub struct SortError {
    typed: String,
}

/// A value to sort by. Times are sorted as numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Number(i64),
    Text(String),
}

/// Parses `priority`, `-updated`, and JSON names such as `created_at`.
impl FromStr for Sort {
    type Err = SortError;

    fn from_str(text: &str) -> Result<Self, SortError> {
        let (typed, descending) = text.strip_prefix('-').map_or((text, false), |name| (name, true));
        let key = |typed: &str| KEYS.into_iter().find(|(name, _)| *name == typed);
        let found = key(typed).or_else(|| key(typed.strip_suffix("_at")?));
        let (_, value) = found.ok_or_else(|| SortError { typed: typed.to_owned() })?;
        Ok(Self { value, descending })
    }
}

/// The part of a job that is kept until all jobs have been read.
#[derive(Debug)]
struct SortEntry {
    value: Option<Value>,
    number: u64,
    id: JobId,
}

impl Sort {
    /// The names of the sort keys.
    pub fn names() -> [&'static str; KEYS.len()] {
        KEYS.map(|(name, _)| name)
    }

    fn entry(self, job: Job) -> SortEntry {
        SortEntry { value: (self.value)(&job), number: job.number, id: job.id }
    }

    /// Jobs without a value come last in both directions; among equal values the newest job comes first.
    fn compare(self, a: &SortEntry, b: &SortEntry) -> Ordering {
        let order = match (&a.value, &b.value) {
            (Some(a), Some(b)) if self.descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        order.then_with(|| Reverse(a.number).cmp(&Reverse(b.number)))
    }
}

/// An iterator over jobs that reads pages on demand.
#[derive(Debug)]
pub struct Listing<'s> {
    store: &'s dyn Store,
    source: Source,
    more: bool,
    last: Option<JobId>,
}

#[derive(Debug)]
enum Source {
    Pages(Pages),
    Ids(std::vec::IntoIter<JobId>),
}

#[derive(Debug)]
struct Pages {
    filter: JobFilter,
    /// The jobs that come after those of the filter.
    later: VecDeque<JobFilter>,
    /// The jobs that were read but not returned yet.
    page: std::vec::IntoIter<Job>,
    /// How many more jobs may be read.
    left: usize,
}

impl<'s> Listing<'s> {
    /// Jobs in the order of the store.
    pub fn in_order(
        store: &'s dyn Store,
        filter: &JobFilter,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Self, StoreError> {
        Self::begin(store, filter.clone(), VecDeque::new(), after, limit)
    }

    /// The jobs of the first filter, then those of the second, and so on.
    pub(crate) fn in_groups(
        store: &'s dyn Store,
        mut filters: VecDeque<JobFilter>,
        limit: usize,
    ) -> Result<Self, StoreError> {
        let first = filters.pop_front().unwrap_or_default();
        Self::begin(store, first, filters, None, limit)
    }

    fn begin(
        store: &'s dyn Store,
        filter: JobFilter,
        later: VecDeque<JobFilter>,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Self, StoreError> {
        let pages = Pages { filter, later, page: Vec::new().into_iter(), left: limit };
        let mut listing = Self { store, source: Source::Pages(pages), more: false, last: None };
        listing.read_page(after.map(PageStart::Job))?;
        Ok(listing)
    }

    /// The first `limit` matching jobs in sorted order. All matching jobs are read, but only their sort keys are kept.
    pub fn sorted(
        store: &'s dyn Store,
        filter: &JobFilter,
        sort: Sort,
        limit: usize,
    ) -> Result<Self, StoreError> {
        let mut first: Vec<SortEntry> = Vec::new();
        let mut more = false;
        let mut after = None;
        loop {
            let page = store.list(filter, &Page { limit: CHUNK, after })?;
            // Continue by position: the job may be removed before the next page is read.
            after = page.last().map(PageStart::from);
            first.extend(page.into_iter().map(|job| sort.entry(job)));
            let is_last = after.is_none();
            if is_last || first.len() > limit.saturating_mul(2).max(CHUNK) {
                first.sort_unstable_by(|a, b| sort.compare(a, b));
                more |= first.len() > limit;
                first.truncate(limit);
            }
            if is_last {
                let ids: Vec<JobId> = first.into_iter().map(|entry| entry.id).collect();
                return Ok(Self { store, source: Source::Ids(ids.into_iter()), more, last: None });
            }
        }
    }

    /// The first `limit` of these jobs, in this order.
    pub fn of(store: &'s dyn Store, mut jobs: Vec<JobRef>, limit: usize) -> Self {
        let more = jobs.len() > limit;
        jobs.truncate(limit);
        let ids: Vec<JobId> = jobs.into_iter().map(|job| job.id).collect();
        Self { store, source: Source::Ids(ids.into_iter()), more, last: None }
    }

    /// Whether nothing has been found to list so far.
    pub fn is_empty(&self) -> bool {
        let left = match &self.source {
            Source::Pages(pages) => pages.page.len(),
            Source::Ids(ids) => ids.len(),
        };
        left == 0 && !self.more
    }

    /// Whether there are more jobs than the limit, and the last job listed. Valid after the iteration has ended.
    pub fn rest(self) -> (bool, Option<JobId>) {
        (self.more, self.last)
    }

    fn read_page(&mut self, mut after: Option<PageStart>) -> Result<(), StoreError> {
        let Source::Pages(pages) = &mut self.source else {
            return Ok(());
        };
        loop {
            let want = pages.left.min(CHUNK);
            // Read one more than needed to know whether there are more.
            let mut page = self.store.list(&pages.filter, &Page { limit: want + 1, after: after.take() })?;
            self.more = page.len() > want;
            page.truncate(want);
            pages.left -= page.len();
            pages.page = page.into_iter();
            match pages.later.pop_front() {
                Some(next) if pages.page.as_slice().is_empty() && !self.more => pages.filter = next,
                Some(next) => {
                    pages.later.push_front(next);
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
    }

    fn next_job(&mut self) -> Result<Option<Job>, StoreError> {
        match &mut self.source {
            Source::Ids(ids) => {
                for id in ids {
                    // Omit a job that was removed since.
                    if let Some(job) = self.store.find(&id)? {
                        self.last = Some(id);
                        return Ok(Some(job));
                    }
                }
                Ok(None)
            }
            Source::Pages(pages) => {
                let Some(job) = pages.page.next() else {
                    return Ok(None);
                };
                self.last = Some(job.id.clone());
                if pages.page.as_slice().is_empty() {
                    if self.more && pages.left > 0 {
                        self.read_page(Some(PageStart::from(&job)))?;
                    } else if !self.more
                        && let Some(next) = pages.later.pop_front()
                    {
                        pages.filter = next;
                        self.read_page(None)?;
                    }
                }
                Ok(Some(job))
            }
        }
    }
}

impl Iterator for Listing<'_> {
    type Item = Result<Job, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_job().transpose()
    }
}
