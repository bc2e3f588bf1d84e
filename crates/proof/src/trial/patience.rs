//! How long to wait for something that gets less: as long as it does.
//!
//! How long it takes until all is done depends on the machine. That nothing is done for a minute does not.

use std::time::{Duration, Instant};

/// How long nothing may get less.
const STANDSTILL: Duration = Duration::from_secs(60);
/// How long it may take at the very most.
const LONGEST: Duration = Duration::from_secs(1_800);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    began: Instant,
    fewest: u64,
    since: Instant,
}

impl Patience {
    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, fewest: u64::MAX, since: now }
    }

    /// Whether it makes no sense to wait any longer, where so much is left.
    pub(crate) fn is_over(&mut self, left: u64, now: Instant) -> bool {
        if left < self.fewest {
            (self.fewest, self.since) = (left, now);
        }
        now.duration_since(self.since) > STANDSTILL || now.duration_since(self.began) > LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_waited_for_and_a_standstill_is_not() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        let at = |secs: u64| began + Duration::from_secs(secs);
        for (secs, left) in [(0, 9), (50, 8), (100, 7), (150, 9), (160, 7)] {
            assert!(!patience.is_over(left, at(secs)), "after {secs} s");
        }
        assert!(patience.is_over(7, at(161)), "none was done for a minute");
        assert!(!patience.is_over(6, at(162)), "another is done");
    }

    #[test]
    fn there_is_an_end_to_it() {
        let began = Instant::now();
        let mut patience = Patience::new(began);
        let minutes = |count: u64| began + Duration::from_secs(60 * count);
        assert!((0..=30).all(|count| !patience.is_over(100 - count, minutes(count))));
        assert!(patience.is_over(50, minutes(31)));
    }
}
