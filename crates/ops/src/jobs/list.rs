//! Listing jobs. The store is read in pages, so that memory is bounded however long the list is.
//!
//! Each page is a separate snapshot. In the order of enqueuing no job is listed twice, regardless of concurrent changes; a
//! job that changes meanwhile may be listed before or after the change, or omitted if it no longer matches the filter.

pub mod filter_text;

use std::collections::VecDeque;

use domain::job::Job;
use domain::text::nearest::suggestion;
use domain::values::name::JobId;
use store::{JobFilter, Order, Page, PageStart, Phase, Search, Store, StoreError};

/// How many jobs a page contains.
const CHUNK: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    #[error("jobs cannot be listed by `{typed}`; {}", suggestion(typed, "orders", &order_names()))]
    Unknown { typed: String },
    #[error("in the order `{}` only {} jobs are listed", name_of(*.0), .1.name())]
    OtherPhase(Order, Phase),
}

/// The names of the orders, as people type them.
pub fn order_names() -> [&'static str; Order::ALL.len()] {
    Order::ALL.map(name_of)
}

fn name_of(order: Order) -> &'static str {
    match order {
        Order::Newest | Order::Oldest | Order::Claim | Order::Soonest => order.name(),
        Order::LongestRunning => "longest-running",
        Order::LastFailed => "last-failed",
    }
}

/// Also takes the name with an underscore, as JSON has it.
pub fn parse_order(typed: &str) -> Result<Order, OrderError> {
    let found = Order::ALL.into_iter().find(|order| [order.name(), name_of(*order)].contains(&typed));
    found.ok_or_else(|| OrderError::Unknown { typed: typed.to_owned() })
}

/// The filter for a list in this order: some orders have only jobs of one phase.
pub fn in_order_of(filter: &JobFilter, order: Order) -> Result<JobFilter, OrderError> {
    match order.phase() {
        Some(phase) if filter.phases.iter().any(|other| *other != phase) => {
            Err(OrderError::OtherPhase(order, phase))
        }
        Some(phase) => Ok(JobFilter { phases: vec![phase], ..filter.clone() }),
        None => Ok(filter.clone()),
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
    Found(FoundPages),
}

/// The pages of a search.
#[derive(Debug)]
struct FoundPages {
    /// For the next page.
    search: Search,
    /// The jobs that were read but not returned yet.
    page: std::vec::IntoIter<Job>,
    /// How many more jobs may be read.
    left: usize,
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

    /// The first `limit` matching jobs in this order.
    pub fn sorted(
        store: &'s dyn Store,
        filter: JobFilter,
        order: Order,
        limit: usize,
    ) -> Result<Self, StoreError> {
        let search = Search { filter, order, ..Search::default() };
        let found = FoundPages { search, page: Vec::new().into_iter(), left: limit };
        let mut listing = Self { store, source: Source::Found(found), more: true, last: None };
        listing.search_page()?;
        Ok(listing)
    }

    /// Whether nothing has been found to list so far.
    pub fn is_empty(&self) -> bool {
        let left = match &self.source {
            Source::Pages(pages) => pages.page.len(),
            Source::Found(found) => found.page.len(),
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

    fn search_page(&mut self) -> Result<(), StoreError> {
        if let Source::Found(found) = &mut self.source {
            found.search.limit = found.left.min(CHUNK);
            let page = self.store.search(&found.search)?;
            found.left -= page.jobs.len();
            self.more = page.next.is_some();
            found.search.after = page.next;
            found.page = page.jobs.into_iter();
        }
        Ok(())
    }

    fn next_job(&mut self) -> Result<Option<Job>, StoreError> {
        match &mut self.source {
            Source::Found(found) => {
                let Some(job) = found.page.next() else {
                    return Ok(None);
                };
                self.last = Some(job.id.clone());
                if found.page.as_slice().is_empty() && found.left > 0 && self.more {
                    self.search_page()?;
                }
                Ok(Some(job))
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
