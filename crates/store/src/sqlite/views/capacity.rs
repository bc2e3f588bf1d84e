//! How many jobs of each queue may be claimed now.
//!
//! A concurrency limit counts the processing jobs of all workers: the stored counter, and the changes of this
//! transaction. A prefetched claim counts too, so a limit is never exceeded, but it is not fully used either: hence a
//! worker says how many claims of limited queues it can use at once, in addition to its prefetch.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use crate::StoreError;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::rates;
use domain::job::life::StateName;
use domain::queue::rate::Meter;
use domain::values::timestamp::Timestamp;
use sys::guards;
use sys::guards::Guard;

/// The capacity of the queues that one claim has examined.
#[derive(Debug)]
pub(crate) struct Capacity {
    known: HashMap<i64, QueueCapacity>,
    /// How many more claims of limited queues the worker can use.
    pub(crate) limited_left: usize,
    /// A limited queue had more jobs than the worker can use.
    pub(crate) has_left_some: bool,
}

/// One queue's capacity.
#[derive(Clone, Copy, Debug)]
struct QueueCapacity {
    is_limited: bool,
    /// How many more of its jobs may be claimed.
    left: usize,
    meter: Option<Meter>,
    taken: u32,
}

impl Capacity {
    pub(crate) fn new(want_limited: usize) -> Self {
        Self { known: HashMap::new(), limited_left: want_limited, has_left_some: false }
    }

    /// How many jobs of a queue may be claimed.
    pub(crate) fn left(&mut self, tx: &Tx<'_>, queue_id: i64) -> Result<usize, StoreError> {
        if let Some(queue) = self.known.get(&queue_id) {
            return Ok(queue.left);
        }
        Ok(self.known.entry(queue_id).or_insert(queue_capacity(tx, queue_id)?).left)
    }

    pub(crate) fn is_limited(&self, queue_id: i64) -> bool {
        self.known.get(&queue_id).is_some_and(|queue| queue.is_limited)
    }

    /// A job of this queue was claimed.
    pub(crate) fn take(&mut self, queue_id: i64) {
        if let Some(queue) = self.known.get_mut(&queue_id).filter(|queue| queue.is_limited) {
            queue.left = queue.left.saturating_sub(1);
            queue.taken += 1;
            self.limited_left = self.limited_left.saturating_sub(1);
        }
    }

    /// Stores the tokens that were used. Returns when a rate allows the next start, among queues that nothing else
    /// holds back.
    pub(crate) fn close(&self, tx: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
        let mut next = None;
        for (queue_id, queue) in &self.known {
            let Some(Meter { rate, bucket }) = queue.meter else {
                continue;
            };
            // A refill time in the future, from before the clock was set back, is reset to now.
            let is_changed = queue.taken > 0 || bucket.refilled_at > tx.now;
            let bucket = bucket.take(rate, tx.now, queue.taken);
            if is_changed {
                rates::store_bucket(tx, *queue_id, Some(bucket))?;
            }
            let at = bucket.next_token_at(rate, tx.now);
            next = next.into_iter().chain(at).min();
        }
        Ok(next)
    }
}

/// A paused queue has no capacity; one without limits has room for everything.
fn queue_capacity(tx: &Tx<'_>, queue_id: i64) -> Result<QueueCapacity, StoreError> {
    // By the primary key of `queues`.
    let mut select = tx.prepare(
        "select paused_at is null, concurrency, rate_count, rate_period_ms, rate_tokens, rate_refilled_at
         from queues where id = ?1",
    )?;
    let (is_open, concurrency, meter) = select.query_row([queue_id], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, Option<u32>>(1)?, rates::read(tx, row, 2)))
    })?;
    let meter = meter?;
    let mut left = if is_open { usize::MAX } else { 0 };
    if let (Some(limit), 1.., false) = (concurrency, left, guards::is_off(Guard::QueueLimits)) {
        left = usize::try_from(i64::from(limit) - processing(tx, queue_id)?).unwrap_or(0);
    }
    // A queue without capacity need not be examined again when its rate has a token.
    let meter = meter.filter(|_| left > 0);
    if let Some(Meter { rate, bucket }) = meter {
        let granted = bucket.grants(rate, tx.now, u32::try_from(left).unwrap_or(u32::MAX));
        left = left.min(granted as usize);
    }
    Ok(QueueCapacity { is_limited: concurrency.is_some() || meter.is_some(), left, meter, taken: 0 })
}

/// How many jobs of a queue could be claimed now, if there were enough.
pub(crate) fn available(tx: &Tx<'_>, queue_id: i64) -> Result<usize, StoreError> {
    Ok(queue_capacity(tx, queue_id)?.left)
}

fn processing(tx: &Tx<'_>, queue_id: i64) -> Result<i64, StoreError> {
    let state = StateName::Processing;
    let mut select = tx.prepare("select count from counters where queue_id = ?1 and state = ?2")?;
    let stored: Option<i64> =
        select.query_row(params![queue_id, state.name()], |row| row.get(0)).optional()?;
    Ok(stored.unwrap_or(0) + tx.counters.borrow().change(queue_id, state))
}

/// Wakes workers for a queue whose concurrency limit was reached, and in which fewer jobs run now.
pub(crate) fn wake_for_freed_capacity(tx: &Tx<'_>) -> Result<(), StoreError> {
    let fewer = tx.counters.borrow().with_fewer(StateName::Processing);
    for queue_id in fewer {
        if !tx.has_new_ready() && has_limited_ready(tx, queue_id)? && queue_capacity(tx, queue_id)?.left > 0 {
            tx.note_ready();
        }
    }
    Ok(())
}

fn has_limited_ready(tx: &Tx<'_>, queue_id: i64) -> Result<bool, StoreError> {
    // By the primary keys of `queues` and `ready`.
    let mut select = tx.prepare(
        "select 1 from queues
         where id = ?1 and concurrency is not null and exists (select 1 from ready where queue_id = queues.id)",
    )?;
    Ok(select.exists([queue_id])?)
}
