//! How many jobs of each queue may be claimed now.
//!
//! A limit counts what is processing with all workers together: what the counters say, and what this transaction has
//! changed. A claim that lies in a worker's hand counts too, so a limit is never exceeded, but it is not used up either:
//! hence a worker says how many claims of limited queues it can do with, whatever else it claims ahead.

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

/// What one claim knows of the queues that it has looked at.
#[derive(Debug)]
pub(crate) struct Rooms {
    known: HashMap<i64, Room>,
    /// How many claims of limited queues the worker still has use for.
    pub(crate) limited_left: usize,
    /// A limited queue had more to give than the worker has use for.
    pub(crate) has_left_some: bool,
}

/// One queue, as it was found.
#[derive(Clone, Copy, Debug)]
struct Room {
    is_limited: bool,
    /// How many more of its jobs may be claimed.
    left: usize,
    meter: Option<Meter>,
    taken: u32,
}

impl Rooms {
    pub(crate) fn new(want_limited: usize) -> Self {
        Self { known: HashMap::new(), limited_left: want_limited, has_left_some: false }
    }

    /// How many jobs of a queue may be claimed.
    pub(crate) fn left(&mut self, tx: &Tx<'_>, queue_id: i64) -> Result<usize, StoreError> {
        if let Some(room) = self.known.get(&queue_id) {
            return Ok(room.left);
        }
        Ok(self.known.entry(queue_id).or_insert(look(tx, queue_id)?).left)
    }

    pub(crate) fn is_limited(&self, queue_id: i64) -> bool {
        self.known.get(&queue_id).is_some_and(|room| room.is_limited)
    }

    /// A job of this queue was claimed.
    pub(crate) fn take(&mut self, queue_id: i64) {
        if let Some(room) = self.known.get_mut(&queue_id).filter(|room| room.is_limited) {
            room.left = room.left.saturating_sub(1);
            room.taken += 1;
            self.limited_left = self.limited_left.saturating_sub(1);
        }
    }

    /// Writes down the tokens that were taken. Gives the moment at which a rate lets the next job start, where nothing
    /// else is in its way.
    pub(crate) fn close(&self, tx: &Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
        let mut next = None;
        for (queue_id, room) in &self.known {
            let Some(Meter { rate, bucket }) = room.meter else {
                continue;
            };
            // One that was filled in the future, by a clock that was set back since, is counted from now on.
            let is_changed = room.taken > 0 || bucket.refilled_at > tx.now;
            let bucket = bucket.take(rate, tx.now, room.taken);
            if is_changed {
                rates::put(tx, *queue_id, Some(bucket))?;
            }
            let at = bucket.next_token_at(rate, tx.now);
            next = next.into_iter().chain(at).min();
        }
        Ok(next)
    }
}

/// A queue that was paused has no room; one without limits has room for all.
fn look(tx: &Tx<'_>, queue_id: i64) -> Result<Room, StoreError> {
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
    // What has no room anyway need not be looked at again when there is a token.
    let meter = meter.filter(|_| left > 0);
    if let Some(Meter { rate, bucket }) = meter {
        let granted = bucket.grants(rate, tx.now, u32::try_from(left).unwrap_or(u32::MAX));
        left = left.min(granted as usize);
    }
    Ok(Room { is_limited: concurrency.is_some() || meter.is_some(), left, meter, taken: 0 })
}

/// How many jobs of a queue could be claimed now, if there were as many.
pub(crate) fn room(tx: &Tx<'_>, queue_id: i64) -> Result<usize, StoreError> {
    Ok(look(tx, queue_id)?.left)
}

fn processing(tx: &Tx<'_>, queue_id: i64) -> Result<i64, StoreError> {
    let state = StateName::Processing;
    let mut select = tx.prepare("select count from counters where queue_id = ?1 and state = ?2")?;
    let stored: Option<i64> =
        select.query_row(params![queue_id, state.name()], |row| row.get(0)).optional()?;
    Ok(stored.unwrap_or(0) + tx.counters.borrow().change(queue_id, state))
}

/// Wakes somebody for a queue in which fewer jobs run than before, if that is what those that wait in it waited for.
pub(crate) fn tell_of_room(tx: &Tx<'_>) -> Result<(), StoreError> {
    let fewer = tx.counters.borrow().with_fewer(StateName::Processing);
    for queue_id in fewer {
        if !tx.has_new_ready() && has_ready_behind_limit(tx, queue_id)? && look(tx, queue_id)?.left > 0 {
            tx.note_ready();
        }
    }
    Ok(())
}

fn has_ready_behind_limit(tx: &Tx<'_>, queue_id: i64) -> Result<bool, StoreError> {
    // By the primary keys of `queues` and `ready`.
    let mut select = tx.prepare(
        "select 1 from queues
         where id = ?1 and concurrency is not null and exists (select 1 from ready where queue_id = queues.id)",
    )?;
    Ok(select.exists([queue_id])?)
}
