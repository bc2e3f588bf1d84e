//! A timeout that is extended by progress: the wait continues as long as the remaining count decreases.
//!
//! How long the whole work takes depends on the machine, but on no machine should it make no progress for a minute.

use std::time::{Duration, Instant};

/// The limit for the whole wait.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(1_800);

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressTimeout {
    began: Instant,
    fewest: u64,
    since: Instant,
    /// How long the count may stay the same.
    max_stall: Duration,
}

impl ProgressTimeout {
    pub(crate) fn new(now: Instant, max_stall: Duration) -> Self {
        Self { began: now, fewest: u64::MAX, since: now, max_stall }
    }

    /// Whether the timeout has expired, given how much work is left.
    pub(crate) fn is_over(&mut self, left: u64, now: Instant) -> bool {
        if left < self.fewest {
            (self.fewest, self.since) = (left, now);
        }
        now.duration_since(self.since) > self.max_stall || now.duration_since(self.began) > MAX_DRAIN_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_extends_the_timeout_and_a_stall_ends_it() {
        let began = Instant::now();
        let mut timeout = ProgressTimeout::new(began, Duration::from_secs(60));
        let at = |secs: u64| began + Duration::from_secs(secs);
        for (secs, left) in [(0, 9), (50, 8), (100, 7), (150, 9), (160, 7)] {
            assert!(!timeout.is_over(left, at(secs)), "after {secs} s");
        }
        assert!(timeout.is_over(7, at(161)), "no progress for a minute");
        assert!(!timeout.is_over(6, at(162)), "progress resets the stall");
    }

    #[test]
    fn the_whole_wait_is_limited() {
        let began = Instant::now();
        let mut timeout = ProgressTimeout::new(began, Duration::from_secs(60));
        let minutes = |count: u64| began + Duration::from_secs(60 * count);
        assert!((0..=30).all(|count| !timeout.is_over(100 - count, minutes(count))));
        assert!(timeout.is_over(50, minutes(31)));
    }
}
