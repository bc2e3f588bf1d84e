//! Whether a worker's queues are idle: nothing is ready, processing or waiting for a retry, on any worker.

use rusqlite::{OptionalExtension, Params};

use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{ServedJobs, StoreError};
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName};

pub(crate) fn is_idle(tx: &Tx<'_>, served: &ServedJobs) -> Result<bool, StoreError> {
    match served {
        ServedJobs::All => are_idle(tx, |_| true),
        ServedJobs::InOrder(queues) => are_idle(tx, |queue| queues.contains(queue)),
        ServedJobs::Job(id) => is_finished_or_gone(tx, id),
    }
}

fn are_idle(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    let busy = any_active(tx, &is_served)? || any_due(tx, &is_served)? || any_pending_unblock(tx)?;
    Ok(!busy)
}

fn any_active(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    // By the primary keys of `ready` and `counters`.
    let sql = "select name from queues
               where paused_at is null
                 and (exists (select 1 from ready where queue_id = queues.id)
                   or exists (select 1 from counters
                              where queue_id = queues.id and count > 0
                                and (state = 'processing' or state = 'failed')))";
    any_queue(tx, sql, [], is_served)
}

/// A due job is ready, although it stays in `waiting` until the next exchange.
fn any_due(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    // By the primary key of `waiting`.
    let sql = "select q.name
               from waiting w cross join jobs j on j.seq = w.seq cross join queues q on q.id = j.queue_id
               where w.due_at <= ?1 and q.paused_at is null";
    any_queue(tx, sql, [tx.now.as_millis()], is_served)
}

/// Whether dependents of finished jobs are not yet unblocked: they may become ready at any time.
pub(crate) fn any_pending_unblock(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.prepare("select 1 from pending_unblocks limit 1")?.exists([])?)
}

fn any_queue(
    tx: &Tx<'_>,
    sql: &str,
    params: impl Params,
    is_served: impl Fn(&QueueName) -> bool,
) -> Result<bool, StoreError> {
    let mut select = tx.prepare(sql)?;
    let mut rows = select.query(params)?;
    while let Some(row) = rows.next()? {
        if is_served(&row::name(row, 0)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a job is finished or removed.
fn is_finished_or_gone(tx: &Tx<'_>, id: &JobId) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select state from jobs where id = ?1")?;
    let word: Option<String> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    let Some(word) = word else {
        return Ok(true);
    };
    let state = StateName::from_name(&word).ok_or_else(|| row::malformed("state", &word))?;
    Ok(state.is_finished())
}
