//! Searching and counting jobs within a time budget.
//!
//! No filter has an index for everything that it can ask, so a search may have to look at every job. It does so a part at a
//! time, each in a snapshot of its own: other processes are not held up, and a caller that has waited long enough gets what
//! was found so far, and the place from which to continue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::rows::jobs::causes as cause_rows;
use crate::rows::tables::queues;
use crate::rows::views::{causes, failures, search};
use crate::{JobFilter, JobRef, Order, PageStart, Result, Store};
use domain::job::Job;
use domain::job::cause::{Cause, CauseId};
use domain::job::life::StateName;
use domain::job::outcome::OutcomeName;
use domain::values::name::{JobId, QueueName};
use domain::values::signal::Signal;
use domain::values::timestamp::Timestamp;

/// How many numbers a part of a search covers.
const WINDOW: u64 = 100_000;
/// The same for a search from old to new, which reads the numbers of a whole part before it takes the first ones.
const OLDEST_WINDOW: u64 = 10_000;
/// How many jobs a part of a search compares with its filter, in another order than that of enqueuing.
const PART: usize = 1_000;
/// A search begins with as many jobs as it wants, and continues with this many times more.
const GROWTH: usize = 4;

/// A search for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    pub filter: JobFilter,
    pub order: Order,
    pub limit: usize,
    pub after: Option<PageStart>,
    /// When to stop and answer; `None`: when the limit is reached or nothing is left.
    pub budget: Option<Duration>,
}

/// What a search has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResult {
    pub jobs: Vec<Job>,
    /// How many jobs were compared with the filter; in the order of enqueuing, how many numbers.
    pub searched: u64,
    /// Whether the search ended because of its limit, or because nothing is left: not for lack of time.
    pub is_complete: bool,
    /// Where to continue; `None` if no more jobs match.
    pub next: Option<PageStart>,
}

/// How many jobs match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobCount {
    pub count: u64,
    /// Whether all jobs were looked at. Otherwise there are at least this many.
    pub is_exact: bool,
    /// States and queues without a job are left out.
    pub by_state: BTreeMap<StateName, u64>,
    pub by_queue: BTreeMap<QueueName, u64>,
}

impl JobCount {
    fn add(&mut self, queue: &QueueName, state: StateName, jobs: u64) {
        if jobs > 0 {
            self.count += jobs;
            *self.by_state.entry(state).or_default() += jobs;
            *self.by_queue.entry(queue.clone()).or_default() += jobs;
        }
    }
}

/// Dead jobs that died of the same cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseSummary {
    pub cause: Cause,
    pub count: u64,
    /// How many of them each queue has.
    pub queues: BTreeMap<QueueName, u64>,
    /// The first death of this cause since there has always been a job that died of it.
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// The newest of these jobs.
    pub example: JobRef,
}

/// An attempt that failed, with what is needed to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    pub job: JobId,
    pub number: u64,
    /// Of the job, now.
    pub state: StateName,
    pub queue: QueueName,
    pub command: String,
    pub attempt: u32,
    pub finished_at: Timestamp,
    pub duration: Duration,
    pub outcome: OutcomeName,
    pub exit_code: Option<i32>,
    pub signal: Option<Signal>,
    pub error: Option<String>,
}

/// When a search has to stop.
struct Deadline(Option<Instant>);

impl Deadline {
    fn after(budget: Option<Duration>) -> Self {
        Self(budget.and_then(|budget| Instant::now().checked_add(budget)))
    }

    fn has_passed(&self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl dyn Store + '_ {
    /// Searches for jobs. At least one part is searched, however small the budget is.
    pub fn search(&self, search: &Search) -> Result<SearchResult> {
        match search.order {
            Order::Newest => self.search_newest(search),
            Order::Oldest => self.search_oldest(search),
            Order::Claim | Order::Soonest | Order::LongestRunning | Order::LastFailed => {
                self.search_parts(search)
            }
        }
    }

    fn search_newest(&self, search: &Search) -> Result<SearchResult> {
        let deadline = Deadline::after(search.budget);
        let mut found = SearchResult { is_complete: true, ..SearchResult::default() };
        let mut below = self.first_below(search.after.as_ref())?;
        // One more than needed shows whether there are more.
        let want = search.limit.saturating_add(1);
        while below > 1 {
            let window = window_below(below);
            let (left, from) = (want - found.jobs.len(), window.start);
            found.jobs.extend(self.view(|tx| search::list_within(tx, &search.filter, &window, left))?);
            if found.jobs.len() == want {
                found.jobs.pop();
                found.next = found.jobs.last().map(PageStart::from).or_else(|| Some(place_of(below)));
                found.searched += below - found.jobs.last().map_or(below, |job| job.number);
                return Ok(found);
            }
            found.searched += below - from;
            below = from;
            if deadline.has_passed() && below > 1 {
                found.is_complete = false;
                found.next = Some(place_of(below));
                return Ok(found);
            }
        }
        Ok(found)
    }

    /// The number below which a list begins.
    fn first_below(&self, after: Option<&PageStart>) -> Result<u64> {
        match after {
            None => Ok(self.newest_number()? + 1),
            Some(after) => self.view(|tx| search::number_of(tx, after)),
        }
    }

    fn search_oldest(&self, search: &Search) -> Result<SearchResult> {
        let deadline = Deadline::after(search.budget);
        let mut found = SearchResult { is_complete: true, ..SearchResult::default() };
        let after = search.after.as_ref().map(|after| self.view(|tx| search::number_of(tx, after)));
        let (mut last, newest) = (after.transpose()?.unwrap_or(0), self.newest_number()?);
        let mut length = (search.limit as u64).saturating_add(1).min(OLDEST_WINDOW);
        while last < newest {
            let window = last + 1..(last + length).min(newest) + 1;
            length = length.saturating_mul(GROWTH as u64).min(OLDEST_WINDOW);
            let left = search.limit - found.jobs.len();
            found.jobs.extend(self.view(|tx| search::list_oldest_within(tx, &search.filter, &window, left))?);
            let is_full = found.jobs.len() == search.limit;
            let full_at = found.jobs.last().filter(|_| is_full).map(|job| job.number);
            let until = full_at.unwrap_or(window.end - 1);
            found.searched += until - last;
            last = until;
            if last < newest && (is_full || deadline.has_passed()) {
                (found.is_complete, found.next) = (is_full, Some(place_of(last)));
                return Ok(found);
            }
        }
        Ok(found)
    }

    fn search_parts(&self, search: &Search) -> Result<SearchResult> {
        let deadline = Deadline::after(search.budget);
        let phases = search.order.phase().map_or_else(|| search.filter.phases.clone(), |phase| vec![phase]);
        let filter = JobFilter { phases, ..search.filter.clone() };
        let mut found = SearchResult { is_complete: true, ..SearchResult::default() };
        let mut after = search.after.clone();
        // Most of the first jobs match, unless the filter asks for much.
        let mut at_most = search.limit.saturating_add(1).min(PART);
        loop {
            let part =
                self.view(|tx| search::next_part(tx, &filter, search.order, after.as_ref(), at_most))?;
            at_most = at_most.saturating_mul(GROWTH).min(PART);
            found.searched += part.searched;
            for (place, job) in part.jobs {
                if found.jobs.len() == search.limit {
                    return Ok(found);
                }
                found.jobs.push(job);
                found.next = Some(place);
            }
            after = part.last;
            if after.is_none() {
                found.next = None;
                return Ok(found);
            }
            if deadline.has_passed() {
                (found.is_complete, found.next) = (false, after);
                return Ok(found);
            }
        }
    }

    /// How many jobs match. If the filter names only states and a queue, the store has counted them.
    pub fn count(&self, filter: &JobFilter, budget: Option<Duration>) -> Result<JobCount> {
        if let Some(states) = filter.counted_states() {
            return self.count_states(filter.queue.as_ref(), &states);
        }
        let deadline = Deadline::after(budget);
        let mut count = JobCount::default();
        let names: BTreeMap<_, _> =
            self.view(queues::list_with_keys)?.into_iter().map(|(key, queue)| (key, queue.name)).collect();
        let mut below = self.newest_number()? + 1;
        while below > 1 {
            let window = window_below(below);
            below = window.start;
            for job in self.view(|tx| search::matches_within(tx, filter, &window))? {
                if let Some(queue) = names.get(&job.queue_id) {
                    count.add(queue, job.state, 1);
                }
            }
            if deadline.has_passed() && below > 1 {
                return Ok(count);
            }
        }
        Ok(JobCount { is_exact: true, ..count })
    }

    fn count_states(&self, only: Option<&QueueName>, states: &[StateName]) -> Result<JobCount> {
        let mut count = JobCount { is_exact: true, ..JobCount::default() };
        for queue in self.queues()?.iter().filter(|queue| only.is_none_or(|only| *only == queue.name)) {
            for (state, jobs) in queue.counts.iter().filter(|(state, _)| states.contains(state)) {
                count.add(&queue.name, *state, *jobs);
            }
        }
        Ok(count)
    }

    /// The number of the job that was enqueued last; 0 without any job.
    pub fn newest_number(&self) -> Result<u64> {
        self.view(search::newest_number)
    }

    /// The jobs with these numbers that match a filter, from new to old, up to `limit`.
    pub fn select_within(
        &self,
        filter: &JobFilter,
        window: &Range<u64>,
        limit: usize,
    ) -> Result<Vec<JobRef>> {
        self.view(|tx| search::select_within(tx, filter, window, limit))
    }

    /// The causes with the most dead jobs, in one queue or in all.
    pub fn causes(&self, queue: Option<&QueueName>, limit: usize) -> Result<Vec<CauseSummary>> {
        self.view(|tx| match queue.map(|name| queues::find_id(tx, name)).transpose()? {
            Some(None) => Ok(Vec::new()),
            queue_id => causes::largest(tx, queue_id.flatten(), limit),
        })
    }

    /// One cause; `None` if no dead job has it.
    pub fn cause(&self, id: CauseId) -> Result<Option<CauseSummary>> {
        self.view(|tx| causes::find(tx, id))
    }

    /// The causes of dead jobs whose ids begin like this, up to `limit`.
    pub fn causes_beginning_with(&self, typed: &str, limit: usize) -> Result<Vec<CauseId>> {
        let Some(range) = CauseId::beginning_with(typed) else {
            return Ok(Vec::new());
        };
        self.view(|tx| cause_rows::within(tx, &range, limit))
    }

    /// The attempts that failed last, newest first; with `before`, only earlier ones.
    pub fn newest_failures(&self, before: Option<Timestamp>, limit: usize) -> Result<Vec<FailedAttempt>> {
        self.view(|tx| failures::newest(tx, before.unwrap_or(Timestamp::MAX), limit))
    }
}

/// The next window below this number.
fn window_below(below: u64) -> Range<u64> {
    // Numbers begin with 1.
    below.saturating_sub(WINDOW).max(1)..below
}

/// The place of this number, in the order of enqueuing.
fn place_of(number: u64) -> PageStart {
    PageStart::Position { number, priority: 0, due_at: Timestamp::from_millis(0) }
}
