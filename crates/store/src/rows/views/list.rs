//! Listing jobs: finds their numbers along an index in the requested order, then reads the jobs.

use super::job_query::{JobQuery, ListPosition};
use crate::rows::jobs::row::{read_job, select_whole_jobs};
use crate::rows::keys::JobSeq;
use crate::rows::tables::{batches, queues};
use crate::rows::tx::Tx;
use crate::rows::{named, read};
use crate::{DeadJob, JobFilter, JobRef, Page, PageStart, Phase, Result, StoreError};
use domain::job::Job;
use domain::values::timestamp::Timestamp;

pub(crate) fn list(tx: &Tx<'_>, filter: &JobFilter, page: &Page) -> Result<Vec<Job>> {
    let after = list_position(tx, page)?;
    let Some(query) = job_query(tx, filter, after, page.limit)? else {
        return Ok(Vec::new());
    };
    let numbers = match filter.phases[..] {
        [Phase::Scheduled] => query.scheduled_in_order()?,
        [Phase::Ready] => query.ready_in_order()?,
        _ => newest(&query, filter)?.into_iter().map(|job| job.number).collect(),
    };
    let job = |number| {
        tx.one(select_whole_jobs!("where j.seq = :number"), named! { number }, |row| read_job(tx, row))
    };
    numbers.into_iter().map(job).collect()
}

pub(crate) fn select(
    tx: &Tx<'_>,
    filter: &JobFilter,
    below: Option<u64>,
    limit: usize,
) -> Result<Vec<JobRef>> {
    let Some(query) = job_query(tx, filter, below.map(position_below), limit)? else {
        return Ok(Vec::new());
    };
    newest(&query, filter)
}

pub(crate) fn select_dead(
    tx: &Tx<'_>,
    filter: &JobFilter,
    below: Option<u64>,
    limit: usize,
) -> Result<Vec<DeadJob>> {
    let query = job_query(tx, filter, below.map(position_below), limit)?;
    query.map_or(Ok(Vec::new()), |query| query.dead())
}

/// The position in the order of enqueuing; the other orders are not used with it.
fn position_below(number: u64) -> ListPosition {
    ListPosition { seq: JobSeq::of_number(number), priority: 0, due_at: Timestamp::from_millis(0) }
}

/// `None` if the filter names a queue or batch that does not exist, so that no job can match.
fn job_query<'t>(
    tx: &'t Tx<'t>,
    filter: &'t JobFilter,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<Option<JobQuery<'t>>> {
    let queue_id = filter.queue.as_ref().map(|name| queues::find_id(tx, name)).transpose()?;
    let batch_id = filter.batch.as_ref().map(|name| batches::find_id(tx, name)).transpose()?;
    if queue_id == Some(None) || batch_id == Some(None) {
        return Ok(None);
    }
    Ok(Some(JobQuery {
        tx,
        queue_id: queue_id.flatten(),
        batch_id: batch_id.flatten(),
        tag: filter.tag.as_deref(),
        changed_before: filter.changed_before,
        command: filter
            .command
            .as_ref()
            .map(|pattern| tx.dialect().pick(pattern.to_glob(), pattern.to_like())),
        after,
        limit,
    }))
}

/// The newest jobs in any of the phases: each phase yields its newest, and the newest of all are taken.
fn newest(query: &JobQuery<'_>, filter: &JobFilter) -> Result<Vec<JobRef>> {
    let mut newest = if filter.phases.is_empty() { query.in_any_state()? } else { Vec::new() };
    for phase in &filter.phases {
        newest.extend(query.in_phase(*phase)?);
    }
    newest.sort_unstable_by_key(|job| std::cmp::Reverse(job.number));
    newest.dedup_by_key(|job| job.number);
    newest.truncate(query.limit);
    Ok(newest)
}

fn list_position(tx: &Tx<'_>, page: &Page) -> Result<Option<ListPosition>> {
    let id = match &page.after {
        None => return Ok(None),
        Some(PageStart::Position { number, priority, due_at }) => {
            let seq = JobSeq::of_number(*number);
            return Ok(Some(ListPosition { seq, priority: *priority, due_at: *due_at }));
        }
        Some(PageStart::Job(id)) => id,
    };
    let found = tx.first("select seq, priority, due_at from jobs where id = :id", named! { id }, |row| {
        Ok(read!(row, ListPosition { seq, priority, due_at }))
    })?;
    found.map(Some).ok_or_else(|| StoreError::NoSuchJob(id.clone()))
}
