//! Durations counted in buckets: which bucket a duration belongs to, and quantiles of the counted durations.

use std::time::Duration;

/// The upper bounds of all buckets but the last, which has none. A duration that equals a bound is in its bucket.
pub type Bounds = [Duration; BUCKETS - 1];

/// How many buckets a histogram has.
pub const BUCKETS: usize = 16;

/// For the time from when a job became due to its claim.
pub const WAIT_BOUNDS: Bounds = from_millis([
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000,
]);

/// For the duration of attempts.
pub const RUN_BOUNDS: Bounds = from_millis([
    5, 20, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000,
]);

const fn from_millis(millis: [u64; BUCKETS - 1]) -> Bounds {
    let mut bounds = [Duration::ZERO; BUCKETS - 1];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = Duration::from_millis(millis[at]);
        at += 1;
    }
    bounds
}

/// Durations, counted by bucket, and their sum. Like the history of attempts, it knows whole milliseconds only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    pub buckets: [u64; BUCKETS],
    pub sum_ms: u64,
}

impl Histogram {
    pub fn record(&mut self, duration: Duration, bounds: &Bounds) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(Duration::from_millis(millis), bounds)] += 1;
        self.sum_ms = self.sum_ms.saturating_add(millis);
    }

    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The duration that this fraction of all durations does not exceed, from 0 to 1. Durations are assumed to be spread
    /// evenly over their bucket. In the last bucket the answer is its lower bound, as Prometheus has it. `None` without
    /// any duration.
    pub fn quantile(&self, fraction: f64, bounds: &Bounds) -> Option<Duration> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = fraction.clamp(0.0, 1.0) * number(total);
        let mut below = 0;
        let mut lower = Duration::ZERO;
        for (count, upper) in self.buckets.iter().zip(bounds) {
            if *count > 0 && number(below + count) >= rank {
                let part = (rank - number(below)).max(0.0) / number(*count);
                return Some(lower + upper.saturating_sub(lower).mul_f64(part));
            }
            below += count;
            lower = *upper;
        }
        Some(lower)
    }
}

/// The number of the bucket that a duration belongs to.
pub fn bucket_of(duration: Duration, bounds: &Bounds) -> usize {
    bounds.iter().position(|bound| duration <= *bound).unwrap_or(bounds.len())
}

#[expect(clippy::cast_precision_loss, reason = "a rank in a histogram need not be exact")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bounds_increase() {
        for bounds in [WAIT_BOUNDS, RUN_BOUNDS] {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
        }
    }

    #[test]
    fn a_duration_belongs_to_the_first_bucket_whose_bound_it_does_not_exceed() {
        for (duration, wait, run) in [
            (0, 0, 0),
            (5, 0, 0),
            (6, 1, 1),
            (10, 1, 1),
            (11, 2, 1),
            (20, 2, 1),
            (21, 2, 2),
            (1_000, 7, 6),
            (1_001, 8, 7),
            (1_800_000, 14, 14),
            (1_800_001, 15, 14),
            (3_600_000, 15, 14),
            (3_600_001, 15, 15),
            (u64::MAX, 15, 15),
        ] {
            let found = [WAIT_BOUNDS, RUN_BOUNDS].map(|bounds| bucket_of(millis(duration), &bounds));
            assert_eq!(found, [wait, run], "{duration} ms");
        }
    }

    #[test]
    fn quantiles_are_interpolated_within_their_bucket() {
        let histogram = |durations: &[u64]| {
            let mut histogram = Histogram::default();
            for duration in durations {
                histogram.record(millis(*duration), &RUN_BOUNDS);
            }
            histogram
        };
        for (durations, fraction, expected) in [
            (&[][..], 0.5, None),
            (&[3], 0.5, Some(2)),
            (&[3], 1.0, Some(5)),
            (&[3], 0.0, Some(0)),
            (&[1, 1, 60, 60], 0.5, Some(5)),
            (&[1, 1, 60, 60], 0.75, Some(75)),
            (&[1, 1, 60, 60], 1.0, Some(100)),
            (&[60, 60, 60, 60], 0.5, Some(75)),
            (&[7_200_000], 0.5, Some(3_600_000)),
            (&[1, 7_200_000], 0.95, Some(3_600_000)),
            (&[1, 1], 7.0, Some(5)),
        ] {
            let found = histogram(durations).quantile(fraction, &RUN_BOUNDS);
            assert_eq!(found.map(|found| found.as_millis()), expected, "{fraction} of {durations:?}");
        }
    }

    #[test]
    fn parts_of_a_millisecond_are_left_out() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_micros(5_900), &RUN_BOUNDS);
        histogram.record(Duration::MAX, &RUN_BOUNDS);
        histogram.record(Duration::MAX, &RUN_BOUNDS);
        assert_eq!((histogram.buckets[0], histogram.buckets[BUCKETS - 1]), (1, 2));
        assert_eq!((histogram.count(), histogram.sum_ms), (3, u64::MAX));
    }

    #[test]
    fn sums_of_histograms_count_every_duration() {
        let mut one = Histogram::default();
        one.record(millis(3), &WAIT_BOUNDS);
        let mut both = one;
        both.record(millis(30), &WAIT_BOUNDS);
        let mut other = Histogram::default();
        other.record(millis(30), &WAIT_BOUNDS);
        one.add(&other);
        assert_eq!(one, both);
        assert_eq!((one.count(), one.sum_ms), (2, 33));
    }
}
