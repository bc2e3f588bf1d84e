//! Whether anything is left to do for a worker: what is ready, processing or waiting for a retry, with any worker.

use rusqlite::{OptionalExtension, Params};

use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Served, StoreError};
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName};

pub(crate) fn is_idle(tx: &Tx<'_>, served: &Served) -> Result<bool, StoreError> {
    match served {
        Served::All => are_idle(tx, |_| true),
        Served::InOrder(queues) => are_idle(tx, |queue| queues.contains(queue)),
        Served::Job(id) => is_over(tx, id),
    }
}

fn are_idle(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    let busy = is_any_at_work(tx, &is_served)? || is_any_due(tx, &is_served)? || is_any_to_be_told(tx)?;
    Ok(!busy)
}

fn is_any_at_work(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    // By the primary keys of `ready` and `counters`.
    let sql = "select name from queues
               where paused_at is null
                 and (exists (select 1 from ready where queue_id = queues.id)
                   or exists (select 1 from counters
                              where queue_id = queues.id and count > 0
                                and (state = 'processing' or state = 'failed')))";
    any_queue(tx, sql, [], is_served)
}

/// A job whose time has come is ready, although it stands in `waiting` until the next exchange.
fn is_any_due(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool, StoreError> {
    // By the primary key of `waiting`.
    let sql = "select q.name
               from waiting w cross join jobs j on j.seq = w.seq cross join queues q on q.id = j.queue_id
               where w.due_at <= ?1 and q.paused_at is null";
    any_queue(tx, sql, [tx.now.as_millis()], is_served)
}

/// Whether jobs have ended of which those who wait for them do not know yet: these may be ready any moment.
pub(crate) fn is_any_to_be_told(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.prepare("select 1 from releases limit 1")?.exists([])?)
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

/// Whether a job is finished or gone.
fn is_over(tx: &Tx<'_>, id: &JobId) -> Result<bool, StoreError> {
    let mut select = tx.prepare("select state from jobs where id = ?1")?;
    let word: Option<String> = select.query_row([id.as_str()], |row| row.get(0)).optional()?;
    let Some(word) = word else {
        return Ok(true);
    };
    let state = StateName::from_name(&word).ok_or_else(|| row::malformed("state", &word))?;
    Ok(state.is_finished())
}
