//! Listing jobs. First their numbers are found, along an index that is already in the wanted order; then the jobs.

use rusqlite::OptionalExtension;

use super::job_query::{Cursor, Cut};
use crate::sqlite::session::row;
use crate::sqlite::session::row::{read_job, select_whole_jobs};
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{batches, queues};
use crate::{After, DeadGroup, JobFilter, Page, Phase, Seen, StoreError};
use domain::job::Job;
use domain::values::timestamp::Timestamp;

pub(crate) fn list(tx: &Tx<'_>, filter: &JobFilter, page: &Page) -> Result<Vec<Job>, StoreError> {
    let after = cursor(tx, page)?;
    let Some(cut) = cut(tx, filter, after, page.limit)? else {
        return Ok(Vec::new());
    };
    let numbers = match filter.phases[..] {
        [Phase::Scheduled] => cut.scheduled_in_order()?,
        [Phase::Ready] => cut.ready_in_order()?,
        _ => newest(&cut, filter)?.into_iter().map(|seen| seen.number).collect(),
    };
    let mut select = tx.prepare(select_whole_jobs!("where j.seq = ?1"))?;
    numbers.into_iter().map(|number| select.query_row([number], |row| Ok(read_job(tx, row)))?).collect()
}

pub(crate) fn select(
    tx: &Tx<'_>,
    filter: &JobFilter,
    below: Option<u64>,
    limit: usize,
) -> Result<Vec<Seen>, StoreError> {
    let below = below.and_then(|number| i64::try_from(number).ok());
    let after = below.map(|seq| Cursor { seq, priority: 0, due_at: 0 });
    let Some(cut) = cut(tx, filter, after, limit)? else {
        return Ok(Vec::new());
    };
    newest(&cut, filter)
}

/// `None` if it names something that is not there, so that there cannot be such jobs.
fn cut<'t>(
    tx: &'t Tx<'t>,
    filter: &'t JobFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<Option<Cut<'t>>, StoreError> {
    let queue_id = filter.queue.as_ref().map(|name| queues::known_id(tx, name)).transpose()?;
    let batch_id = filter.batch.as_ref().map(|name| batches::known_id(tx, name)).transpose()?;
    if queue_id == Some(None) || batch_id == Some(None) {
        return Ok(None);
    }
    Ok(Some(Cut {
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

/// The newest in any of the phases: each gives its newest, and the newest of all are taken.
fn newest(cut: &Cut<'_>, filter: &JobFilter) -> Result<Vec<Seen>, StoreError> {
    let mut newest = if filter.phases.is_empty() { cut.in_any_state()? } else { Vec::new() };
    for phase in &filter.phases {
        newest.extend(cut.in_phase(*phase)?);
    }
    newest.sort_unstable_by_key(|seen| std::cmp::Reverse(seen.number));
    newest.dedup_by_key(|seen| seen.number);
    newest.truncate(usize::try_from(cut.limit).unwrap_or(usize::MAX));
    Ok(newest)
}

fn cursor(tx: &Tx<'_>, page: &Page) -> Result<Option<Cursor>, StoreError> {
    let id = match &page.after {
        None => return Ok(None),
        Some(After::Seen { number, priority, due_at }) => {
            let seq = i64::try_from(*number).unwrap_or(i64::MAX);
            return Ok(Some(Cursor { seq, priority: *priority, due_at: due_at.as_millis() }));
        }
        Some(After::Job(id)) => id,
    };
    let mut select = tx.prepare("select seq, priority, due_at from jobs where id = ?1")?;
    let found = select
        .query_row([id.as_str()], |row| {
            Ok(Cursor { seq: row.get(0)?, priority: row.get(1)?, due_at: row.get(2)? })
        })
        .optional()?;
    found.map(Some).ok_or_else(|| StoreError::NoSuchJob(id.clone()))
}

pub(crate) fn dead_by_error(tx: &Tx<'_>) -> Result<Vec<DeadGroup>, StoreError> {
    // By index jobs_by_state. SQLite takes `id` from the row that has the maximum.
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
