//! How short attempts are, and so how many jobs to claim before there is a slot for them.
//!
//! A slot that waits for a commit before it can start its next job is idle for longer than a very short job takes. So
//! while attempts are short, a worker has leases in hand for each slot: some to start next, and some that last while the
//! ledger lets outcomes gather for a moment, because what costs the most is the number of commits. They are counted by
//! the time that they will take: where many processes share the machine, each is slow, and needs few. A long job must
//! never lie in one worker's hand while another is idle: then nothing is claimed ahead, and what was is given back.

use std::time::Duration;

/// A worker has no more in hand than it would run in this time. Attempts that take longer are not claimed ahead for.
const STOCK: Duration = Duration::from_millis(50);
/// How many claims are in hand for each slot at most, beyond the one that it runs.
const MOST_PER_SLOT: u32 = 16;
/// How long outcomes may gather while no slot waits for the ledger.
pub(super) const GATHER: Duration = Duration::from_millis(10);
/// A claim that found no slot for this long is given back.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The share of the newest attempt in the average.
const WEIGHT: f64 = 0.2;

#[derive(Debug, Default)]
pub(super) struct Pace {
    average_seconds: Option<f64>,
}

impl Pace {
    pub(super) fn note(&mut self, attempt: Duration) {
        let seconds = attempt.as_secs_f64();
        let average = self.average_seconds.unwrap_or(seconds);
        self.average_seconds = Some(average + WEIGHT * (seconds - average));
    }

    /// Something lay waiting for too long: begin to measure anew.
    pub(super) fn forget(&mut self) {
        self.average_seconds = None;
    }

    /// How many jobs to have in hand beyond those that can start at once.
    pub(super) fn ahead(&self, slots: usize) -> usize {
        let fits = |count: &u32| {
            self.average_seconds.is_some_and(|average| f64::from(*count) * average <= STOCK.as_secs_f64())
        };
        slots * (1..=MOST_PER_SLOT).take_while(fits).count()
    }

    /// With fewer than these in hand the slots might run out of them while the ledger commits.
    pub(super) fn low_stock(&self, slots: usize) -> usize {
        match self.ahead(slots) {
            0 => 0,
            ahead => slots.max(ahead / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_ahead_is_as_much_as_runs_in_a_moment() {
        for (milliseconds, ahead) in [(1, 64), (3, 64), (8, 24), (25, 8), (50, 4), (51, 0), (1_000, 0)] {
            let mut pace = Pace::default();
            assert_eq!(pace.ahead(4), 0, "nothing is known yet");
            pace.note(Duration::from_millis(milliseconds));
            assert_eq!(pace.ahead(4), ahead, "{milliseconds} ms");
        }
    }

    #[test]
    fn one_long_attempt_is_enough_to_stop_it_and_many_short_ones_to_begin_again() {
        let mut pace = Pace::default();
        pace.note(Duration::from_millis(1));
        pace.note(Duration::from_secs(1));
        assert_eq!((pace.ahead(4), pace.low_stock(4)), (0, 0));
        for _ in 0..40 {
            pace.note(Duration::from_millis(1));
        }
        assert_eq!((pace.ahead(4), pace.low_stock(4)), (64, 32));
        pace.forget();
        assert_eq!(pace.ahead(4), 0);
    }

    #[test]
    fn every_slot_has_its_next_job_at_hand() {
        let mut pace = Pace::default();
        pace.note(Duration::from_millis(50));
        assert_eq!((pace.ahead(4), pace.low_stock(4)), (4, 4));
    }
}
