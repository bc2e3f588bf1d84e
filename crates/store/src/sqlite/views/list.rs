//! Listing jobs: finds their numbers along an index in the requested order, then reads the jobs.

use rusqlite::OptionalExtension;

use super::job_query::{JobQuery, ListPosition};
use crate::sqlite::session::row;
use crate::sqlite::session::row::{read_job, select_whole_jobs};
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{batches, queues};
use crate::{DeadGroup, JobFilter, JobRef, Page, PageStart, Phase, StoreError};
use domain::job::Job;
use domain::values::timestamp::Timestamp;

pub(crate) fn list(tx: &Tx<'_>, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError> {
    let after = list_position(tx, page)?;
    let Some(query) = job_query(tx, filter, after, page.limit)? else {
        return Ok(Vec::new());
    };
    let numbers = match filter.phases[..] {
        [Phase::Scheduled] => query.scheduled_in_order()?,
        [Phase::Ready] => query.ready_in_order()?,
        _ => newest(&query, filter)?.into_iter().map(|job| job.number).collect(),
    };
    let mut select = tx.prepare(select_whole_jobs!("where j.seq = ?1"))?;
    numbers.into_iter().map(|number| select.query_row([number], |row| Ok(read_job(tx, row)))?).collect()
}

pub(crate) fn select(
    tx: &Tx<'_>,
    filter: &JobFilter,
    below: Option<u64>,
    limit: usize,
) -> Result<Vec<JobRef>, StoreError> {
    let below = below.and_then(|number| i64::try_from(number).ok());
    let after = below.map(|seq| ListPosition { seq, priority: 0, due_at: 0 });
    let Some(query) = job_query(tx, filter, after, limit)? else {
        return Ok(Vec::new());
    };
    newest(&query, filter)
}

/// `None` if the filter names a queue or batch that does not exist, so that no job can match.
fn job_query<'t>(
    tx: &'t Tx<'t>,
    filter: &'t JobFilter,
    after: Option<ListPosition>,
    limit: usize,
) -> Result<Option<JobQuery<'t>>, StoreError> {
    let queue_id = filter.queue.as_ref().map(|name| queues::find_id(tx, name)).transpose()?;
    let batch_id = filter.batch.as_ref().map(|name| batches::find_id(tx, name)).transpose()?;
    if queue_id == Some(None) || batch_id == Some(None) {
        return Ok(None);
    }
    Ok(Some(JobQuery {
        tx,
        now: tx.now.as_millis(),
        queue_id: queue_id.flatten(),
        batch_id: batch_id.flatten(),
        tag: filter.tag.as_deref(),
        changed_before: filter.changed_before.map(Timestamp::as_millis),
        command: filter.command.as_ref().map(ToString::to_string),
        after,
        limit: i64::try_from(limit).unwrap_or(i64::MAX),
    }))
}

/// The newest jobs in any of the phases: each phase yields its newest, and the newest of all are taken.
fn newest(query: &JobQuery<'_>, filter: &JobFilter) -> Result<Vec<JobRef>, StoreError> {
    let mut newest = if filter.phases.is_empty() { query.in_any_state()? } else { Vec::new() };
    for phase in &filter.phases {
        newest.extend(query.in_phase(*phase)?);
    }
    newest.sort_unstable_by_key(|job| std::cmp::Reverse(job.number));
    newest.dedup_by_key(|job| job.number);
    newest.truncate(usize::try_from(query.limit).unwrap_or(usize::MAX));
    Ok(newest)
}

fn list_position(tx: &Tx<'_>, page: &Page) -> Result<Option<ListPosition>, StoreError> {
    let id = match &page.after {
        None => return Ok(None),
        Some(PageStart::Position { number, priority, due_at }) => {
            let seq = i64::try_from(*number).unwrap_or(i64::MAX);
            return Ok(Some(ListPosition { seq, priority: *priority, due_at: due_at.as_millis() }));
        }
        Some(PageStart::Job(id)) => id,
    };
    let mut select = tx.prepare("select seq, priority, due_at from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| {
            Ok(ListPosition { seq: row.get(0)?, priority: row.get(1)?, due_at: row.get(2)? })
        })
        .optional()?;
    found.map(Some).ok_or_else(|| StoreError::NoSuchJob(id.clone()))
}

pub(crate) fn dead_by_error(tx: &Tx<'_>) -> Result<Vec<DeadGroup>, StoreError> {
    // By index jobs_by_state. SQLite takes `id` from the row with the maximum.
    let mut select = tx.prepare(
        "select reason, error, count(*), max(finished_at), id from jobs where state = 'dead'
         group by reason, error order by count(*) desc",
    )?;
    let rows = select.query_map([], |row| {
        Ok(row::name(row, 4).and_then(|example| {
            Ok(DeadGroup {
                reason: row.get(0)?,
                error: row.get(1)?,
                count: row.get(2)?,
                last_at: Timestamp::from_millis(row.get(3)?),
                example,
            })
        }))
    })?;
    rows.map(|row| row?).collect()
}
