//! How many jobs of each queue may start now.
//!
//! A concurrency limit counts the processing jobs of all workers. A prefetched claim counts too, so a limit is never
//! exceeded, but it is not fully used either: hence a worker says how many claims of limited queues it can use at once,
//! in addition to its prefetch.

use std::collections::HashMap;
use std::hash::Hash;

use crate::queue::rate::{Bucket, Meter};
use crate::values::timestamp::Timestamp;

/// The limits of one queue, as they are stored.
#[derive(Clone, Copy, Debug)]
pub struct ClaimLimits {
    pub is_paused: bool,
    pub concurrency: Option<u32>,
    pub meter: Option<Meter>,
}

/// One queue's capacity.
#[derive(Clone, Copy, Debug)]
pub struct QueueCapacity {
    is_limited: bool,
    /// How many more of its jobs may be claimed.
    pub left: usize,
    meter: Option<Meter>,
    taken: u32,
}

impl QueueCapacity {
    /// A paused queue has no capacity; one without limits has room for everything. `processing` counts its running
    /// jobs, and is asked only if that matters.
    pub fn of<E>(
        limits: ClaimLimits,
        processing: impl FnOnce() -> Result<i64, E>,
        now: Timestamp,
    ) -> Result<Self, E> {
        let mut left = if limits.is_paused { 0 } else { usize::MAX };
        if let (Some(limit), 1..) = (limits.concurrency, left) {
            left = usize::try_from(i64::from(limit).saturating_sub(processing()?)).unwrap_or(0);
        }
        // A queue without capacity need not be examined again when its rate has a token.
        let meter = limits.meter.filter(|_| left > 0);
        if let Some(Meter { rate, bucket }) = meter {
            let granted = bucket.grants(rate, now, u32::try_from(left).unwrap_or(u32::MAX));
            left = left.min(granted as usize);
        }
        Ok(Self { is_limited: limits.concurrency.is_some() || meter.is_some(), left, meter, taken: 0 })
    }
}

/// The capacity of the queues that one claim has examined.
#[derive(Debug)]
pub struct Capacity<Q> {
    known: HashMap<Q, QueueCapacity>,
    /// How many more claims of limited queues the worker can use.
    pub limited_left: usize,
    /// A limited queue had more jobs than the worker can use.
    pub has_left_some: bool,
}

/// The rates of a claim's queues after it.
#[derive(Debug, Default)]
pub struct RateChanges<Q> {
    /// Buckets from which the claim took tokens, or whose refill time lay in the future.
    pub buckets: Vec<(Q, Bucket)>,
    /// When a rate allows the next start, among queues that nothing else holds back.
    pub next_start_at: Option<Timestamp>,
}

impl<Q: Copy + Eq + Hash> Capacity<Q> {
    pub fn new(want_limited: usize) -> Self {
        Self { known: HashMap::new(), limited_left: want_limited, has_left_some: false }
    }

    /// How many jobs of a queue may be claimed; `load` reads a queue that was not examined before.
    pub fn left<E>(&mut self, queue: Q, load: impl FnOnce() -> Result<QueueCapacity, E>) -> Result<usize, E> {
        if let Some(known) = self.known.get(&queue) {
            return Ok(known.left);
        }
        Ok(self.known.entry(queue).or_insert(load()?).left)
    }

    pub fn is_limited(&self, queue: Q) -> bool {
        self.known.get(&queue).is_some_and(|queue| queue.is_limited)
    }

    /// A job of this queue was claimed.
    pub fn take(&mut self, queue: Q) {
        if let Some(queue) = self.known.get_mut(&queue).filter(|queue| queue.is_limited) {
            queue.left = queue.left.saturating_sub(1);
            queue.taken += 1;
            self.limited_left = self.limited_left.saturating_sub(1);
        }
    }

    /// The rates after the claim.
    pub fn close(&self, now: Timestamp) -> RateChanges<Q> {
        let mut changes = RateChanges { buckets: Vec::new(), next_start_at: None };
        for (queue, capacity) in &self.known {
            let Some(Meter { rate, bucket }) = capacity.meter else {
                continue;
            };
            // A refill time in the future, from before the clock was set back, is reset to now.
            let is_changed = capacity.taken > 0 || bucket.refilled_at > now;
            let bucket = bucket.take(rate, now, capacity.taken);
            if is_changed {
                changes.buckets.push((*queue, bucket));
            }
            let at = bucket.next_token_at(rate, now);
            changes.next_start_at = changes.next_start_at.into_iter().chain(at).min();
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn capacity(limits: ClaimLimits, processing: i64) -> QueueCapacity {
        let Ok(capacity) = QueueCapacity::of::<Infallible>(limits, || Ok(processing), NOW);
        capacity
    }

    const OPEN: ClaimLimits = ClaimLimits { is_paused: false, concurrency: None, meter: None };

    fn metered(rate: &str) -> ClaimLimits {
        let rate: crate::queue::rate::Rate = rate.parse().expect("a rate");
        ClaimLimits { meter: Some(Meter { rate, bucket: rate.full(NOW) }), ..OPEN }
    }

    #[test]
    fn a_queue_has_what_its_pause_its_limit_and_its_rate_leave() {
        assert_eq!(capacity(OPEN, 9).left, usize::MAX);
        assert_eq!(capacity(ClaimLimits { is_paused: true, ..OPEN }, 0).left, 0);
        let limited = ClaimLimits { concurrency: Some(4), ..OPEN };
        assert_eq!(capacity(limited, 1).left, 3);
        assert_eq!(capacity(limited, 9).left, 0, "the limit was lowered");
        assert_eq!(capacity(metered("5/m"), 0).left, 5);
        assert_eq!(capacity(ClaimLimits { concurrency: Some(2), ..metered("5/m") }, 0).left, 2);
    }

    #[test]
    fn a_claim_uses_up_limits_and_tokens() {
        let mut claim: Capacity<u8> = Capacity::new(3);
        let load = || Ok::<_, Infallible>(capacity(metered("5/m"), 0));
        let Ok(left) = claim.left(1, load);
        assert_eq!((left, claim.is_limited(1), claim.is_limited(2)), (5, true, false));
        for _ in 0..5 {
            claim.take(1);
        }
        let Ok(left) = claim.left(1, || -> Result<_, Infallible> { unreachable!("it is known") });
        assert_eq!((left, claim.limited_left), (0, 0));
        let changes = claim.close(NOW);
        assert_eq!(changes.buckets.len(), 1);
        assert!(changes.buckets[0].1.tokens.abs() < 1e-6);
        assert_eq!(changes.next_start_at, Some(Timestamp::from_millis(1_012_000)), "a token each 12 s");
    }

    #[test]
    fn an_unlimited_queue_costs_nothing_to_close() {
        let mut claim: Capacity<u8> = Capacity::new(0);
        let Ok(_) = claim.left(1, || Ok::<_, Infallible>(capacity(OPEN, 0)));
        claim.take(1);
        let changes = claim.close(NOW);
        assert!(changes.buckets.is_empty() && changes.next_start_at.is_none());
    }
}
