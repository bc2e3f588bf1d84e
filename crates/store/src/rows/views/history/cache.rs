//! What a process remembers of minutes that are over, so that it need not sum up hundreds of thousands of rows for every
//! answer. Only a process that answers often needs it: the dashboard, `top`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::Result;
use crate::rows::keys::QueueKey;
use crate::rows::tables::minutes::RowSum;
use crate::rows::tables::queues::QueueIdentity;
use crate::rows::tables::{queues, settings};
use crate::rows::tx::Tx;
use domain::metrics::resolution::minute_of;

use super::Reader;

/// The last minutes are read for every answer: on PostgreSQL a transaction that began in one of them may still commit, within
/// the deadline of a session, which is far shorter.
const OPEN_MINUTES: i64 = 5;
/// What was remembered is read again after this time, in milliseconds: an import changes minutes that are over, and the oldest
/// ones are deleted.
const KEPT: i64 = 600_000;
/// A clock that was set back by more than this makes minutes run twice, in milliseconds.
const MAX_CLOCK_STEP: i64 = 60_000;
/// A history that is kept for less is small, and loses minutes that are not over.
const SHORTEST_RETENTION: Duration = Duration::from_secs(3_600);
/// How many time lines are remembered. One takes up to 150 KB.
const MAX_TIMELINES: usize = 16;

/// Several connections of a process may share one.
#[derive(Debug, Default)]
pub struct HistoryCache {
    pub(super) totals: Entries<(), HashMap<QueueKey, RowSum>>,
    pub(super) timelines: Entries<(Duration, Option<QueueKey>), Reader>,
}

/// The newest entries by their keys.
#[derive(Debug)]
pub(super) struct Entries<K, T>(Mutex<Vec<Entry<K, T>>>);

impl<K, T> Default for Entries<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[derive(Clone, Debug)]
struct Entry<K, T> {
    key: K,
    past: Past<T>,
    read_at: Moment,
    /// A queue that was removed takes its history along, and its number may be used again.
    queues: Vec<QueueIdentity>,
}

/// A time on both clocks of a transaction, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Moment {
    wall: i64,
    lease: i64,
}

impl Moment {
    fn of(tx: &Tx<'_>) -> Self {
        Self { wall: tx.now.as_millis(), lease: tx.lease_now() }
    }
}

/// What was found in the minutes before one.
#[derive(Clone, Debug)]
pub(super) struct Past<T> {
    pub(super) found: T,
    pub(super) end: i64,
}

impl<K: PartialEq, T: Clone> Entries<K, T> {
    /// What is known of the minutes that are over, from the cache if it can be; otherwise `read` finds it, up to the minute
    /// that it is given.
    pub(super) fn past(&self, tx: &Tx<'_>, key: K, read: impl FnOnce(i64) -> Result<T>) -> Result<Past<T>> {
        let end = minute_of(tx.now) - OPEN_MINUTES;
        if settings::load(tx)?.retain_metrics.is_some_and(|kept| kept < SHORTEST_RETENTION) {
            return Ok(Past { found: read(end)?, end });
        }
        let (now, queues) = (Moment::of(tx), queues::identities(tx)?);
        let is_usable = |entry: &&Entry<K, T>| {
            entry.key == key && entry.past.end <= end && !entry.is_old(now) && entry.is_of(&queues)
        };
        if let Some(known) = self.lock().iter().find(is_usable) {
            return Ok(known.past.clone());
        }
        // Others may read the same meanwhile; no request waits for the store of another.
        let past = Past { found: read(end)?, end };
        let mut entries = self.lock();
        entries.retain(|entry| entry.key != key && !entry.is_old(now));
        if entries.len() >= MAX_TIMELINES {
            entries.remove(0);
        }
        entries.push(Entry { key, past: past.clone(), read_at: now, queues });
        Ok(past)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Entry<K, T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Entry<K, T> {
    fn is_of(&self, queues: &[QueueIdentity]) -> bool {
        let mut pairs = self.queues.iter().zip(queues);
        self.queues.len() == queues.len() && pairs.all(|(known, later)| known.is_continued_by(later))
    }

    fn is_old(&self, now: Moment) -> bool {
        let (wall, lease) = (now.wall - self.read_at.wall, now.lease - self.read_at.lease);
        wall.max(lease) > KEPT || lease - wall > MAX_CLOCK_STEP
    }
}
