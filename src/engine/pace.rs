//! How short attempts are, and so how many jobs to claim before there is a slot for them.
//!
//! A slot that waits for a commit before it can start its next job is idle for longer than a very short job takes. So
//! while attempts are that short, a worker has leases in hand for each slot: one to start next, and one that lasts while
//! the ledger lets outcomes gather for a moment, because what takes the most time is the number of commits. A long job
//! must never lie in one worker's hand while another is idle: then nothing is claimed ahead, and what was is given back.

use std::time::Duration;

/// Attempts shorter than this are worth claiming ahead for.
const SHORT: Duration = Duration::from_millis(5);
/// How many claims are in hand for each slot beyond the one that it runs.
const PER_SLOT: usize = 4;
/// How long outcomes may gather while no slot waits for the ledger.
pub(super) const GATHER: Duration = Duration::from_millis(4);
/// A claim that found no slot for this long is given back.
pub(super) const PATIENCE: Duration = Duration::from_millis(30);
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
        match self.average_seconds {
            Some(average) if average < SHORT.as_secs_f64() => slots * PER_SLOT,
            Some(_) | None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_very_short_attempts_are_claimed_ahead_for() {
        let mut pace = Pace::default();
        assert_eq!(pace.ahead(4), 0, "nothing is known yet");
        pace.note(Duration::from_millis(1));
        assert_eq!(pace.ahead(4), 16);
        pace.note(Duration::from_secs(1));
        assert_eq!(pace.ahead(4), 0, "one long attempt is enough to stop it");
        for _ in 0..40 {
            pace.note(Duration::from_millis(1));
        }
        assert_eq!(pace.ahead(4), 16, "and many short ones to begin again");
        pace.forget();
        assert_eq!(pace.ahead(4), 0);
    }
}
