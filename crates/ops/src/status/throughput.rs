//! Throughput, computed from the store's counters.
//!
//! A counter says how many jobs are in a state, not how many passed through it. The growth between two samples is a lower
//! bound: a job that failed and was claimed again between them is not counted as failed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use domain::job::life::StateName;
use domain::values::name::QueueName;
use store::Queue;

/// The length of the longer of the two intervals.
const WINDOW: Duration = Duration::from_secs(60);

/// Accumulates the growth of the counters between samples.
#[derive(Debug, Default)]
pub struct Throughput {
    counts: BTreeMap<(QueueName, StateName), u64>,
    /// Oldest first.
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Duration,
    /// Counted since the first sample.
    completed: u64,
    failed: u64,
}

/// How many attempts ended within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRate {
    pub completed: u64,
    pub failed: u64,
    pub over: Duration,
}

impl Throughput {
    /// Adds a sample of the counters at time `at`, relative to any fixed start.
    pub fn take(&mut self, at: Duration, queues: &[Queue]) {
        let counts = queues.iter().flat_map(|queue| {
            queue.counts.iter().map(|(state, count)| ((queue.name.clone(), *state), *count))
        });
        let counts: BTreeMap<_, _> = counts.collect();
        let sample = match self.samples.back() {
            None => Sample { at, ..Sample::default() },
            Some(last) => Sample {
                at,
                completed: last.completed + growth(&self.counts, &counts, StateName::Completed),
                failed: last.failed
                    + growth(&self.counts, &counts, StateName::Failed)
                    + growth(&self.counts, &counts, StateName::Dead),
            },
        };
        self.counts = counts;
        self.samples.push_back(sample);
        while self.samples.len() > 2 && self.samples.front().is_some_and(|oldest| at > oldest.at + WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Between the last two samples.
    pub fn since_last(&self) -> Option<AttemptRate> {
        self.rate_since(self.samples.len().checked_sub(2)?)
    }

    /// Over the last moments: at least this long, so that two samples shortly after each other show no burst.
    pub fn over(&self, span: Duration) -> Option<AttemptRate> {
        let last = self.samples.back()?.at;
        let is_before = |sample: &Sample| last.saturating_sub(sample.at) >= span;
        self.rate_since(self.samples.iter().rposition(is_before).unwrap_or(0))
    }

    /// Over the last minute, or since the first sample.
    pub fn last_minute(&self) -> Option<AttemptRate> {
        self.rate_since(0)
    }

    fn rate_since(&self, at: usize) -> Option<AttemptRate> {
        let (first, last) = (self.samples.get(at)?, self.samples.back()?);
        let over = last.at.checked_sub(first.at).filter(|over| !over.is_zero())?;
        Some(AttemptRate {
            completed: last.completed - first.completed,
            failed: last.failed - first.failed,
            over,
        })
    }
}

/// The growth of this state, summed over the queues in which it grew.
fn growth(
    before: &BTreeMap<(QueueName, StateName), u64>,
    now: &BTreeMap<(QueueName, StateName), u64>,
    state: StateName,
) -> u64 {
    let grown = now.iter().filter(|((_, counted), _)| *counted == state);
    grown.map(|(key, count)| count.saturating_sub(before.get(key).copied().unwrap_or(0))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, counts: &[(StateName, u64)]) -> Queue {
        Queue::new(name.parse().expect("a name"), counts.iter().copied().collect())
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_sample_gives_no_rate() {
        let mut throughput = Throughput::default();
        assert_eq!((throughput.since_last(), throughput.last_minute()), (None, None));
        throughput.take(seconds(0), &[queue("a", &[(StateName::Completed, 7)])]);
        assert_eq!((throughput.since_last(), throughput.last_minute()), (None, None));
    }

    #[test]
    fn growth_of_a_state_is_counted_and_shrinkage_is_ignored() {
        let mut throughput = Throughput::default();
        throughput.take(seconds(0), &[queue("a", &[(StateName::Completed, 7), (StateName::Failed, 1)])]);
        // The failed job was claimed again and died; meanwhile jobs of a new queue completed.
        let there = queue("a", &[(StateName::Completed, 10), (StateName::Dead, 1)]);
        throughput.take(seconds(2), &[there, queue("b", &[(StateName::Completed, 4)])]);
        let rate = AttemptRate { completed: 7, failed: 1, over: seconds(2) };
        assert_eq!(throughput.since_last(), Some(rate));
        throughput.take(seconds(4), &[queue("a", &[(StateName::Completed, 2)]), queue("b", &[])]);
        assert_eq!(throughput.since_last(), Some(AttemptRate { completed: 0, failed: 0, over: seconds(2) }));
        assert_eq!(throughput.last_minute(), Some(AttemptRate { over: seconds(4), ..rate }));
    }

    #[test]
    fn a_rate_over_moments_reaches_back_far_enough() {
        let mut throughput = Throughput::default();
        for (millis, completed) in [(0, 0), (1_000, 1), (6_000, 2), (6_040, 3)] {
            let queues = [queue("a", &[(StateName::Completed, completed)])];
            throughput.take(Duration::from_millis(millis), &queues);
        }
        let over = Duration::from_millis(5_040);
        assert_eq!(throughput.over(seconds(5)), Some(AttemptRate { completed: 2, failed: 0, over }));
        assert_eq!(throughput.over(seconds(60)), throughput.last_minute());
    }

    #[test]
    fn the_window_is_at_most_a_minute_unless_samples_are_further_apart() {
        let mut throughput = Throughput::default();
        for second in 0..=100 {
            throughput.take(seconds(second), &[queue("a", &[(StateName::Completed, second * 3)])]);
        }
        assert_eq!(
            throughput.last_minute(),
            Some(AttemptRate { completed: 180, failed: 0, over: seconds(60) })
        );
        throughput.take(seconds(1_000), &[queue("a", &[(StateName::Completed, 310)])]);
        assert_eq!(
            throughput.last_minute(),
            Some(AttemptRate { completed: 10, failed: 0, over: seconds(900) })
        );
    }
}
