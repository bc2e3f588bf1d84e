//! Searching for jobs a part at a time: by windows of numbers in the order of enqueuing, otherwise by the next jobs in the
//! requested order, each of which is then compared with the filter.

use std::ops::Range;

use super::job_query::{JobQuery, ListPosition, Match};
use super::list::{job_query, newest, position, position_below, read_all};
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::rows::{named, read};
use crate::{JobFilter, JobRef, Order, PageStart, Result};
use domain::job::Job;
use domain::values::timestamp::Timestamp;

/// The number of the job that was enqueued last; 0 without any job.
pub(crate) fn newest_number(tx: &Tx<'_>) -> Result<u64> {
    let newest: Option<Option<JobSeq>> = tx.value("select max(seq) from jobs", named! {})?;
    Ok(newest.flatten().map_or(0, JobSeq::number))
}

/// The number of the job at this place.
pub(crate) fn number_of(tx: &Tx<'_>, place: &PageStart) -> Result<u64> {
    Ok(position(tx, place)?.seq.number())
}

/// A query for the jobs whose numbers are in this window.
fn within<'t>(
    tx: &'t Tx<'t>,
    filter: &'t JobFilter,
    window: &Range<u64>,
    limit: usize,
) -> Result<Option<JobQuery<'t>>> {
    let query = job_query(tx, filter, Some(position_below(window.end)), limit)?;
    Ok(query.map(|query| JobQuery { from: JobSeq::of_number(window.start), ..query }))
}

/// The jobs of a window that match, from new to old.
pub(crate) fn select_within(
    tx: &Tx<'_>,
    filter: &JobFilter,
    window: &Range<u64>,
    limit: usize,
) -> Result<Vec<JobRef>> {
    within(tx, filter, window, limit)?.map_or(Ok(Vec::new()), |query| newest(&query, filter))
}

/// The same as whole jobs.
pub(crate) fn list_within(
    tx: &Tx<'_>,
    filter: &JobFilter,
    window: &Range<u64>,
    limit: usize,
) -> Result<Vec<Job>> {
    let found = select_within(tx, filter, window, limit)?;
    read_all(tx, found.into_iter().map(|job| job.number))
}

/// As [`list_within`], from old to new.
pub(crate) fn list_oldest_within(
    tx: &Tx<'_>,
    filter: &JobFilter,
    window: &Range<u64>,
    limit: usize,
) -> Result<Vec<Job>> {
    let found = select_within(tx, filter, window, usize::MAX)?;
    read_all(tx, found.into_iter().rev().take(limit).map(|job| job.number))
}

/// All jobs of a window that match, by their keys.
pub(crate) fn matches_within(tx: &Tx<'_>, filter: &JobFilter, window: &Range<u64>) -> Result<Vec<Match>> {
    let Some(query) = within(tx, filter, window, usize::MAX)? else {
        return Ok(Vec::new());
    };
    let mut found = query.matches(&filter.phases)?;
    // A job can be in several phases.
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// A part of a list in another order than that of enqueuing.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Those that match, each with its place.
    pub(crate) jobs: Vec<(PageStart, Job)>,
    /// How many were compared with the filter.
    pub(crate) searched: u64,
    /// The place of the last one; `None` if no job follows.
    pub(crate) last: Option<PageStart>,
}

/// The next jobs in this order after a place; `at_most` are compared with the filter.
pub(crate) fn next_part(
    tx: &Tx<'_>,
    filter: &JobFilter,
    order: Order,
    after: Option<&PageStart>,
    at_most: usize,
) -> Result<Part> {
    let candidates = candidates(tx, filter, order, after, at_most)?;
    let mut part = Part { searched: candidates.len() as u64, ..Part::default() };
    if candidates.len() >= at_most {
        part.last = candidates.last().map(Candidate::place);
    }
    for candidate in candidates {
        let number = candidate.seq.number();
        let job = list_within(tx, filter, &(number..number + 1), 1)?;
        part.jobs.extend(job.into_iter().map(|job| (candidate.place(), job)));
    }
    Ok(part)
}

/// A job with the values by which its list is sorted.
struct Candidate {
    seq: JobSeq,
    priority: i32,
    at: Timestamp,
}

impl Candidate {
    fn place(&self) -> PageStart {
        PageStart::Position { number: self.seq.number(), priority: self.priority, due_at: self.at }
    }
}

/// The next jobs in this order, whatever the filter says beside the queue.
fn candidates(
    tx: &Tx<'_>,
    filter: &JobFilter,
    order: Order,
    after: Option<&PageStart>,
    limit: usize,
) -> Result<Vec<Candidate>> {
    let of_queue = JobFilter { queue: filter.queue.clone(), ..JobFilter::default() };
    let after = after.map(|after| position(tx, after)).transpose()?;
    let Some(query) = job_query(tx, &of_queue, after, limit)? else {
        return Ok(Vec::new());
    };
    let numbers = match order {
        Order::Newest | Order::Oldest => return Ok(Vec::new()),
        Order::LastFailed => return last_failed(&query),
        Order::LongestRunning => return longest_running(&query),
        Order::Claim => query.ready_in_order()?,
        Order::Soonest => query.scheduled_in_order()?,
    };
    let candidate = |number| {
        tx.one("select seq, priority, due_at from jobs where seq = :number", named! { number }, |row| {
            Ok(read!(row, Candidate { seq, priority, at: row.get("due_at")? }))
        })
    };
    numbers.into_iter().map(candidate).collect()
}

/// Jobs with a failed attempt, by the last one that failed.
fn last_failed(query: &JobQuery<'_>) -> Result<Vec<Candidate>> {
    let last = ListPosition { seq: JobSeq::LAST, priority: 0, due_at: Timestamp::MAX };
    let after = query.after.as_ref().unwrap_or(&last);
    // By index attempts_failed, and the primary key of attempts.
    query.tx.all(
        "select a.seq, a.finished_at from attempts a
         where (a.finished_at, a.seq) < (:at, :seq)
               and (a.outcome = 'failure' or a.outcome = 'signal' or a.outcome = 'timeout' or a.outcome = 'spawn_error' or a.outcome = 'lost')
               and not exists (select 1 from attempts b where b.seq = a.seq and b.number > a.number
                               and (b.outcome = 'failure' or b.outcome = 'signal' or b.outcome = 'timeout' or b.outcome = 'spawn_error' or b.outcome = 'lost'))
         order by a.finished_at desc, a.seq desc limit :limit",
        named! { at: after.due_at, seq: after.seq, limit: query.limit },
        |row| Ok(read!(row, Candidate { seq, priority: 0, at: row.get("finished_at")? })),
    )
}

/// All that run are read: they are no more than the slots of all workers.
fn longest_running(query: &JobQuery<'_>) -> Result<Vec<Candidate>> {
    // By index jobs_by_state.
    let mut running = query.tx.all(
        "select seq, started_at from jobs where state = 'processing' and (queue_id = :queue_id or :queue_id is null)",
        named! { queue_id: query.queue_id },
        |row| Ok(read!(row, Candidate { seq, priority: 0, at: row.get("started_at")? })),
    )?;
    running.sort_unstable_by_key(|job| (job.at, job.seq));
    if let Some(after) = &query.after {
        running.retain(|job| (job.at, job.seq) > (after.due_at, after.seq));
    }
    running.truncate(query.limit);
    Ok(running)
}
