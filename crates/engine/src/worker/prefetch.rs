//! Prefetching: how many jobs to claim before a slot is free for them, judged by how short attempts are.
//!
//! A slot that waits for a commit before it can start its next job is idle for longer than a very short job takes. So
//! while attempts are short, a worker holds several leases per slot: some to start next, and some that last while the
//! ledger collects outcomes, because the number of commits costs the most. The limit is the time that these jobs will
//! take: on a busy machine each attempt is slow, so few are needed. A long job must never be queued in one worker while
//! another is idle: while attempts are long the worker prefetches nothing, and it releases prefetched claims that wait.

use std::time::Duration;

/// A slot runs its prefetched jobs within this time. While attempts take longer, nothing is prefetched.
const MAX_PREFETCHED_TIME: Duration = Duration::from_millis(50);
/// How many claims to hold per slot at most, beyond the one that it runs.
const MAX_PER_SLOT: u32 = 16;
/// How long the ledger may delay a commit while no slot waits for it.
pub(crate) const COMMIT_DELAY: Duration = Duration::from_millis(10);
/// A claim that has waited this long for a slot is released.
pub(crate) const MAX_CLAIM_WAIT: Duration = Duration::from_millis(100);
/// Longer attempts count as this: all of them are far too long to prefetch, and an attempt of an hour must not dominate
/// the average for hundreds of others.
const MAX_COUNTED_DURATION: Duration = Duration::from_secs(1);
/// The weight of the newest attempt in the average. A long attempt weighs more: a few of them among many short ones are
/// the worst case, because prefetched claims wait for them and are released. So they count at once and for a while.
const WEIGHT: f64 = 0.02;
const LONG_WEIGHT: f64 = 0.2;

#[derive(Debug, Default)]
pub(crate) struct Prefetch {
    average_seconds: Option<f64>,
}

impl Prefetch {
    pub(crate) fn note(&mut self, attempt: Duration) {
        let seconds = attempt.min(MAX_COUNTED_DURATION).as_secs_f64();
        let average = self.average_seconds.unwrap_or(seconds);
        let weight = if attempt > MAX_PREFETCHED_TIME { LONG_WEIGHT } else { WEIGHT };
        self.average_seconds = Some(average + weight * (seconds - average));
    }

    /// A claim waited for too long, so the attempts before it take at least that time. Resetting the average instead
    /// would make the worker prefetch as much again after the next short attempt.
    pub(crate) fn note_wait(&mut self) {
        let waited = MAX_CLAIM_WAIT.as_secs_f64();
        self.average_seconds = Some(self.average_seconds.map_or(waited, |average| average.max(waited)));
    }

    /// How many jobs to hold in addition to those that can start at once.
    pub(crate) fn limit(&self, slots: usize) -> usize {
        let fits = |count: &u32| {
            self.average_seconds
                .is_some_and(|average| f64::from(*count) * average <= MAX_PREFETCHED_TIME.as_secs_f64())
        };
        slots * (1..=MAX_PER_SLOT).take_while(fits).count()
    }

    /// With fewer queued claims than this, slots might become idle while the ledger commits.
    pub(crate) fn low_watermark(&self, slots: usize) -> usize {
        match self.limit(slots) {
            0 => 0,
            ahead => slots.max(ahead / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_what_a_slot_runs_within_the_prefetched_time() {
        for (milliseconds, ahead) in [(1, 64), (3, 64), (8, 24), (25, 8), (50, 4), (51, 0), (1_000, 0)] {
            let mut prefetch = Prefetch::default();
            assert_eq!(prefetch.limit(4), 0, "nothing is known yet");
            prefetch.note(Duration::from_millis(milliseconds));
            assert_eq!(prefetch.limit(4), ahead, "{milliseconds} ms");
        }
    }

    #[test]
    fn one_long_attempt_stops_prefetching_and_many_short_ones_resume_it() {
        let mut prefetch = Prefetch::default();
        prefetch.note(Duration::from_millis(1));
        prefetch.note(Duration::from_secs(3_600));
        assert_eq!((prefetch.limit(4), prefetch.low_watermark(4)), (0, 0));
        let mut ahead = Vec::new();
        for _ in 0..5 {
            (0..50).for_each(|_| prefetch.note(Duration::from_millis(1)));
            ahead.push(prefetch.limit(4));
        }
        assert_eq!(ahead, [0, 4, 16, 44, 64], "step by step");
        assert_eq!(prefetch.low_watermark(4), 32);
    }

    #[test]
    fn a_claim_that_waited_counts_like_a_long_attempt() {
        let mut prefetch = Prefetch::default();
        prefetch.note(Duration::from_millis(1));
        prefetch.note_wait();
        prefetch.note(Duration::from_millis(1));
        assert_eq!(prefetch.limit(4), 0);
        prefetch.note(Duration::from_secs(10));
        prefetch.note_wait();
        (0..50).for_each(|_| prefetch.note(Duration::from_millis(1)));
        assert_eq!(prefetch.limit(4), 0, "a wait does not lower the average");
    }

    #[test]
    fn every_slot_has_its_next_job_queued() {
        let mut prefetch = Prefetch::default();
        prefetch.note(Duration::from_millis(50));
        assert_eq!((prefetch.limit(4), prefetch.low_watermark(4)), (4, 4));
    }
}
