//! Whether a worker's queues are idle: nothing is ready, processing or waiting for a retry, on any worker.

use crate::rows::tables::batches;
use crate::rows::tx::Tx;
use crate::rows::{Params, named};
use crate::{Result, ServedJobs};
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName};

pub(crate) fn is_idle(tx: &Tx<'_>, served: &ServedJobs) -> Result<bool> {
    match served {
        ServedJobs::All => are_idle(tx, |_| true),
        ServedJobs::InOrder(queues) => are_idle(tx, |queue| queues.contains(queue)),
        ServedJobs::Batch(name) => batches::is_finished_or_gone(tx, name),
        ServedJobs::Job(id) => is_finished_or_gone(tx, id),
    }
}

fn are_idle(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool> {
    let busy = any_active(tx, &is_served)? || any_due(tx, &is_served)? || any_pending_unblock(tx)?;
    Ok(!busy)
}

fn any_active(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool> {
    // By the primary keys of `ready` and `counters`.
    let sql = "select name from queues
               where paused_at is null
                 and (exists (select 1 from ready where queue_id = queues.id)
                   or (select sum(count) from counters
                       where queue_id = queues.id and (state = 'processing' or state = 'failed')) > 0)";
    any_queue(tx, sql, named! {}, is_served)
}

/// A due job is ready, although it stays in `waiting` until the next exchange.
fn any_due(tx: &Tx<'_>, is_served: impl Fn(&QueueName) -> bool) -> Result<bool> {
    // By the primary key of `waiting`.
    let sql = "select q.name
               from waiting w cross join jobs j cross join queues q
               where j.seq = w.seq and q.id = j.queue_id and w.due_at <= :now and q.paused_at is null";
    any_queue(tx, sql, named! { now: tx.now }, is_served)
}

/// Whether dependents of finished jobs are not yet unblocked: they may become ready at any time.
pub(crate) fn any_pending_unblock(tx: &Tx<'_>) -> Result<bool> {
    tx.exists("select 1 from pending_unblocks limit 1", named! {})
}

fn any_queue(
    tx: &Tx<'_>,
    sql: &str,
    params: Params<'_>,
    is_served: impl Fn(&QueueName) -> bool,
) -> Result<bool> {
    tx.any(sql, params, |row| Ok(is_served(&row.get("name")?)))
}

/// Whether a job is finished or removed.
fn is_finished_or_gone(tx: &Tx<'_>, id: &JobId) -> Result<bool> {
    let state: Option<StateName> = tx.value("select state from jobs where id = :id", named! { id })?;
    Ok(state.is_none_or(StateName::is_finished))
}
