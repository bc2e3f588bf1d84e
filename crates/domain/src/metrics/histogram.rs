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

    /// The duration that this fraction of all durations does not exceed, from 0 to 1. `None` without any duration.
    ///
    /// An estimate that is always within the bucket of the true answer. The sum says where in their buckets the durations
    /// are: each bucket gets a mean so that all of them make the sum, and its durations are assumed to be spread evenly
    /// around that mean. So durations that are all alike give about their mean, however wide their bucket is.
    pub fn quantile(&self, fraction: f64, bounds: &Bounds) -> Option<Duration> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = fraction.clamp(0.0, 1.0) * number(total);
        let mut below = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            if *count > 0 && number(below + count) >= rank {
                let rank = (rank - number(below)).max(0.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is not negative"
                )]
                let millis = self.within_bucket(at, rank, bounds).round() as u64;
                return Some(Duration::from_millis(millis));
            }
            below += count;
        }
        None
    }

    /// The duration at this rank among those of one bucket, in milliseconds.
    fn within_bucket(&self, at: usize, rank: f64, bounds: &Bounds) -> f64 {
        let (lower, upper) = limits(at, bounds);
        let (mean, count) = (self.mean_in_bucket(at, bounds), number(self.buckets[at]));
        let spread = (mean - lower).min(upper - mean);
        let estimate = mean + spread * (2.0 * rank / count - 1.0);
        // The sum also limits what a single duration can be: this one and those after it are at least as long.
        let shortest_others = self.sum_at(bounds, |(lower, _)| lower) - count * lower;
        let place = rank.ceil().clamp(1.0, count);
        let longest = (number(self.sum_ms) - shortest_others - (place - 1.0) * lower) / (count - place + 1.0);
        estimate.min(longest).clamp(lower, upper)
    }

    /// The assumed mean of the durations in one bucket, in milliseconds.
    fn mean_in_bucket(&self, at: usize, bounds: &Bounds) -> f64 {
        let (lower, upper) = limits(at, bounds);
        let endless = number(self.buckets[BUCKETS - 1]);
        if endless > 0.0 {
            // Nearly all of the sum is in the bucket without an upper bound; the others keep their middle.
            let rest = number(self.sum_ms) - self.sum_at(bounds, |limits| mean_at(0.0, limits));
            return if upper.is_finite() {
                mean_at(0.0, (lower, upper))
            } else {
                (rest / endless).max(lower)
            };
        }
        // The tilt that makes the sum, by halving an interval: a larger tilt makes a larger sum.
        let (mut least, mut most) = (-1.0, 1.0);
        for _ in 0..TILT_STEPS {
            let tilt = f64::midpoint(least, most);
            if self.sum_at(bounds, |limits| mean_at(tilt, limits)) < number(self.sum_ms) {
                least = tilt;
            } else {
                most = tilt;
            }
        }
        mean_at(f64::midpoint(least, most), (lower, upper))
    }

    /// The sum of all durations, in milliseconds, if each were at this place of its bucket.
    fn sum_at(&self, bounds: &Bounds, place: impl Fn((f64, f64)) -> f64) -> f64 {
        let counted = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(at, count)| number(*count) * place(limits(at, bounds))).sum()
    }
}

/// How often the interval for the tilt is halved: the means of the widest bucket are exact to a part of a millisecond.
const TILT_STEPS: usize = 60;

/// The mean of the durations in a bucket for a tilt from -1 to 1: the middle, moved towards a bound. A wide bucket moves
/// more, even for its width, than a narrow one, because its middle is the worse guess.
fn mean_at(tilt: f64, (lower, upper): (f64, f64)) -> f64 {
    if upper.is_infinite() {
        return 0.0;
    }
    let width = upper - lower;
    f64::midpoint(lower, upper) + width * (tilt * width).clamp(-0.5, 0.5)
}

/// The lower and the upper bound of a bucket, in milliseconds.
fn limits(at: usize, bounds: &Bounds) -> (f64, f64) {
    let millis = |bound: &Duration| bound.as_secs_f64() * 1_000.0;
    let lower = at.checked_sub(1).and_then(|before| bounds.get(before)).map_or(0.0, millis);
    (lower, bounds.get(at).map_or(f64::INFINITY, millis))
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
    fn quantiles_are_estimated_within_their_bucket() {
        let spread: Vec<u64> = (1..=100).map(|nth| 1_000 + 15 * nth).collect();
        let mixed = [&[3; 80][..], &[70_000; 20]].concat();
        for (durations, fraction, expected) in [
            (&[][..], 0.5, None),
            (&[3], 0.0, Some(1)),
            (&[3], 0.5, Some(3)),
            (&[3], 1.0, Some(3)),
            (&[3], 7.0, Some(3)),
            // Durations that are all alike.
            (&[1_003; 20], 0.5, Some(1_003)),
            (&[1_003; 20], 0.95, Some(1_006)),
            (&[1_000; 20], 0.95, Some(1_000)),
            (&[70_000; 10], 0.5, Some(70_000)),
            (&[70_000; 10], 0.95, Some(79_000)),
            (&[299_000; 10], 0.5, Some(299_000)),
            (&[60; 4], 0.5, Some(60)),
            // Spread evenly over the bucket.
            (&spread, 0.5, Some(1_758)),
            (&spread, 0.95, Some(2_426)),
            // Several buckets.
            (&[1, 1, 60, 60], 0.5, Some(5)),
            (&[1, 1, 60, 60], 1.0, Some(67)),
            (&mixed, 0.5, Some(3)),
            (&mixed, 0.95, Some(75_003)),
            // The last bucket has no upper bound.
            (&[7_200_000], 0.5, Some(7_200_000)),
            (&[1, 7_200_000], 0.5, Some(5)),
            (&[1, 7_200_000], 0.95, Some(7_200_001)),
        ] {
            let mut histogram = Histogram::default();
            for duration in durations {
                histogram.record(millis(*duration), &RUN_BOUNDS);
            }
            let found = histogram.quantile(fraction, &RUN_BOUNDS);
            assert_eq!(found.map(|found| found.as_millis()), expected, "{fraction} of {durations:?}");
        }
    }

    #[test]
    fn a_sum_that_cannot_be_keeps_the_estimate_in_its_bucket() {
        for sum_ms in [0, u64::MAX] {
            let mut histogram = Histogram { sum_ms, ..Histogram::default() };
            histogram.buckets[7] = 3;
            let found = histogram.quantile(0.5, &RUN_BOUNDS).expect("an estimate");
            assert!((millis(1_000)..=millis(2_500)).contains(&found), "{found:?}");
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
