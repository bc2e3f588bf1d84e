//! Listing jobs: finds their numbers along an index in the requested order, then reads the jobs.

use super::job_query::{JobQuery, ListPosition};
use crate::rows::jobs::row::{read_job, select_whole_jobs};
use crate::rows::keys::JobSeq;
use crate::rows::tables::{batches, queues, schedules, workers};
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
    let numbers: Vec<u64> = match filter.phases[..] {
        [Phase::Scheduled] => query.scheduled_in_order()?,
        [Phase::Ready] => query.ready_in_order()?,
        _ => newest(&query, filter)?.into_iter().map(|job| job.number).collect(),
    };
    read_all(tx, numbers)
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
pub(super) fn position_below(number: u64) -> ListPosition {
    ListPosition { seq: JobSeq::of_number(number), priority: 0, due_at: Timestamp::from_millis(0) }
}

/// `None` if the filter names a queue, batch, schedule or worker that does not exist, so that no job can match.
pub(super) fn job_query<'t>(
    tx: &'t Tx<'t>,
    filter: &'t JobFilter,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<Option<JobQuery<'t>>> {
    let queue_id = filter.queue.as_ref().map(|name| queues::find_id(tx, name)).transpose()?;
    let batch_id = filter.batch.as_ref().map(|name| batches::find_id(tx, name)).transpose()?;
    let schedule_id = filter.schedule.as_ref().map(|name| schedules::find_id(tx, name)).transpose()?;
    let worker_seq = filter.worker.as_ref().map(|worker| workers::find_seq(tx, worker)).transpose()?;
    let is_missing = queue_id == Some(None)
        || batch_id == Some(None)
        || schedule_id == Some(None)
        || worker_seq == Some(None);
    if is_missing {
        return Ok(None);
    }
    Ok(Some(JobQuery {
        tx,
        queue_id: queue_id.flatten(),
        batch_id: batch_id.flatten(),
        schedule_id: schedule_id.flatten(),
        worker_seq: worker_seq.flatten(),
        tag: filter.tag.as_deref(),
        id_prefix: filter.id_prefix.as_deref(),
        cause_id: filter.cause,
        reason: filter.reason,
        exit_code: filter.exit_code,
        changed_before: filter.changed_before,
        changed_after: filter.changed_after,
        command: filter
            .command
            .as_ref()
            .map(|pattern| tx.dialect().pick(pattern.to_glob(), pattern.to_like())),
        from: JobSeq::BEFORE_FIRST,
        after,
        limit,
    }))
}

/// The newest jobs in any of the phases: each phase yields its newest, and the newest of all are taken.
pub(super) fn newest(query: &JobQuery<'_>, filter: &JobFilter) -> Result<Vec<JobRef>> {
    let mut newest = query.in_phases(&filter.phases)?;
    newest.sort_unstable_by_key(|job| std::cmp::Reverse(job.number));
    newest.dedup_by_key(|job| job.number);
    newest.truncate(query.limit);
    Ok(newest)
}

/// These jobs, which must exist.
pub(super) fn read_all(tx: &Tx<'_>, numbers: impl IntoIterator<Item = u64>) -> Result<Vec<Job>> {
    let job = |number| {
        tx.one(select_whole_jobs!("where j.seq = :number"), named! { number }, |row| read_job(tx, row))
    };
    numbers.into_iter().map(job).collect()
}

fn list_position(tx: &Tx<'_>, page: &Page) -> Result<Option<ListPosition>> {
    page.after.as_ref().map(|after| position(tx, after)).transpose()
}

/// The position of a job, which must exist if the caller names it.
pub(super) fn position(tx: &Tx<'_>, after: &PageStart) -> Result<ListPosition> {
    let id = match after {
        PageStart::Position { number, priority, due_at } => {
            let seq = JobSeq::of_number(*number);
            return Ok(ListPosition { seq, priority: *priority, due_at: *due_at });
        }
        PageStart::Job(id) => id,
    };
    let found = tx.first("select seq, priority, due_at from jobs where id = :id", named! { id }, |row| {
        Ok(read!(row, ListPosition { seq, priority, due_at }))
    })?;
    found.ok_or_else(|| StoreError::NoSuchJob(id.clone()))
}
