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
pub(crate) const GATHER: Duration = Duration::from_millis(10);
/// A claim that found no slot for this long is given back.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// Attempts that take longer count as this: all of them are far too long, and one of an hour is not to be remembered for
/// hundreds of others.
const LONG: Duration = Duration::from_secs(1);
/// The share of the newest attempt in the average. Of one for which nothing is claimed ahead it is more: a few of them among
/// many short ones are the worst case, because what was claimed ahead waits behind them and is given back. So they are
/// noticed at once and remembered for a while.
const WEIGHT: f64 = 0.02;
const WEIGHT_OF_LONG: f64 = 0.2;

#[derive(Debug, Default)]
pub(crate) struct Pace {
    average_seconds: Option<f64>,
}

impl Pace {
    pub(crate) fn note(&mut self, attempt: Duration) {
        let seconds = attempt.min(LONG).as_secs_f64();
        let average = self.average_seconds.unwrap_or(seconds);
        let weight = if attempt > STOCK { WEIGHT_OF_LONG } else { WEIGHT };
        self.average_seconds = Some(average + weight * (seconds - average));
    }

    /// Something lay waiting for too long: what it waited for takes at least that time. To forget everything instead would
    /// mean to claim as much again after the next short attempt.
    pub(crate) fn note_wait(&mut self) {
        let waited = PATIENCE.as_secs_f64();
        self.average_seconds = Some(self.average_seconds.map_or(waited, |average| average.max(waited)));
    }

    /// How many jobs to have in hand beyond those that can start at once.
    pub(crate) fn ahead(&self, slots: usize) -> usize {
        let fits = |count: &u32| {
            self.average_seconds.is_some_and(|average| f64::from(*count) * average <= STOCK.as_secs_f64())
        };
        slots * (1..=MOST_PER_SLOT).take_while(fits).count()
    }

    /// With fewer than these in hand the slots might run out of them while the ledger commits.
    pub(crate) fn low_stock(&self, slots: usize) -> usize {
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
        pace.note(Duration::from_secs(3_600));
        assert_eq!((pace.ahead(4), pace.low_stock(4)), (0, 0));
        let mut ahead = Vec::new();
        for _ in 0..5 {
            (0..50).for_each(|_| pace.note(Duration::from_millis(1)));
            ahead.push(pace.ahead(4));
        }
        assert_eq!(ahead, [0, 4, 16, 44, 64], "step by step");
        assert_eq!(pace.low_stock(4), 32);
    }

    #[test]
    fn what_lay_waiting_is_remembered_like_a_long_attempt() {
        let mut pace = Pace::default();
        pace.note(Duration::from_millis(1));
        pace.note_wait();
        pace.note(Duration::from_millis(1));
        assert_eq!(pace.ahead(4), 0);
        pace.note(Duration::from_secs(10));
        pace.note_wait();
        (0..50).for_each(|_| pace.note(Duration::from_millis(1)));
        assert_eq!(pace.ahead(4), 0, "it does not make a longer one shorter");
    }

    #[test]
    fn every_slot_has_its_next_job_at_hand() {
        let mut pace = Pace::default();
        pace.note(Duration::from_millis(50));
        assert_eq!((pace.ahead(4), pace.low_stock(4)), (4, 4));
    }
}
