//! The capacity of queues, from their rows and counters: see [`domain::plan::capacity`].

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::params;
use crate::rows::tables::rates;
use crate::rows::tx::Tx;
use domain::job::life::StateName;
use domain::plan::capacity::{ClaimLimits, QueueCapacity};
use sys::guards;
use sys::guards::Guard;

/// How many jobs of a queue could be claimed now, if there were enough.
pub(crate) fn of_queue(tx: &Tx<'_>, queue_id: QueueKey) -> Result<QueueCapacity> {
    // By the primary key of `queues`.
    let limits = tx.one(
        "select paused_at is not null, concurrency, rate_count, rate_period_ms, rate_tokens, rate_refilled_at
         from queues where id = ?1",
        params![queue_id],
        |row| {
            Ok(ClaimLimits {
                is_paused: row.get(0)?,
                concurrency: row.get(1)?,
                meter: rates::read(tx, row, 2)?,
            })
        },
    )?;
    let running = || if guards::is_off(Guard::QueueLimits) { Ok(i64::MIN) } else { processing(tx, queue_id) };
    QueueCapacity::of(limits, running, tx.now)
}

/// The stored counter, and the changes of this transaction.
fn processing(tx: &Tx<'_>, queue_id: QueueKey) -> Result<i64> {
    let state = StateName::Processing;
    let stored: Option<Option<i64>> = tx.value(
        "select cast(sum(count) as bigint) from counters where queue_id = ?1 and state = ?2",
        params![queue_id, state],
    )?;
    Ok(stored.flatten().unwrap_or(0) + tx.counters.change(queue_id, state))
}

/// Wakes workers for a queue whose concurrency limit was reached, and in which fewer jobs run now.
pub(crate) fn wake_for_freed_capacity(tx: &mut Tx<'_>) -> Result<()> {
    for queue_id in tx.counters.with_fewer(StateName::Processing) {
        if !tx.effects.wakes_workers && has_limited_ready(tx, queue_id)? && of_queue(tx, queue_id)?.left > 0 {
            tx.note_ready();
        }
    }
    Ok(())
}

/// By the primary keys of `queues` and `ready`.
pub(crate) const HAS_LIMITED_READY: &str = "select 1 from queues
     where id = ?1 and concurrency is not null and exists (select 1 from ready where queue_id = queues.id)";

fn has_limited_ready(tx: &Tx<'_>, queue_id: QueueKey) -> Result<bool> {
    tx.exists(HAS_LIMITED_READY, params![queue_id])
}
