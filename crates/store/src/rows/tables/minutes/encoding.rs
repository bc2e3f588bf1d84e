//! The content of a row as bytes: each number that is not zero, after its place. A number is in groups of seven bits, the
//! lowest first. Most numbers of a minute are zero.
//!
//! A column for each of them would cost every turn of a worker more than all other changes of its counters, and every
//! process more time to start, because it parses the schema.

use super::Content;
use crate::Result;
use crate::rows::value::malformed;
use domain::metrics::activity::Activity;
use domain::metrics::depth::Depth;

/// The numbers of a row. Their places are never changed; a later version may add some at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numbers([u64; PLACES]);

const PLACES: usize = 51;
/// The numbers before this place are summed up, of those from here on the largest counts.
const FIRST_PEAK: usize = 46;

const STARTED: usize = 0;
const DIED: usize = 1;
const CPU_MS: usize = 2;
const WAIT_MS: usize = 3;
const RUN_MS: usize = 4;
const OUTCOMES: std::ops::Range<usize> = 5..13;
/// The first of the outcomes.
const SUCCEEDED: usize = OUTCOMES.start;
const WAITS: std::ops::Range<usize> = 13..29;
const RUNS: std::ops::Range<usize> = 29..45;
const ENQUEUED: usize = 45;
/// 1 if a sample was taken.
const SAMPLED: usize = 46;
const PENDING: usize = 47;
const PROCESSING: usize = 48;
const FAILED: usize = 49;
const DEAD: usize = 50;

/// The lower seven bits of a byte are a part of a number.
const PART: u8 = 0x7f;
/// The highest says that more follow.
const MORE: u8 = 0x80;

impl Numbers {
    pub(super) const ZERO: Self = Self([0; PLACES]);

    pub(super) fn of(content: &Content) -> Self {
        let mut numbers = [0; PLACES];
        let activity = &content.activity;
        numbers[STARTED] = activity.started;
        numbers[DIED] = activity.died;
        numbers[CPU_MS] = activity.cpu_ms;
        numbers[WAIT_MS] = activity.waits.sum_ms;
        numbers[RUN_MS] = activity.runs.sum_ms;
        numbers[OUTCOMES].copy_from_slice(&activity.outcomes);
        numbers[WAITS].copy_from_slice(&activity.waits.buckets);
        numbers[RUNS].copy_from_slice(&activity.runs.buckets);
        numbers[ENQUEUED] = content.enqueued;
        if let Some(depth) = content.depth {
            numbers[SAMPLED] = 1;
            numbers[PENDING] = depth.pending;
            numbers[PROCESSING] = depth.processing;
            numbers[FAILED] = depth.failed;
            numbers[DEAD] = depth.dead;
        }
        Self(numbers)
    }

    pub(super) fn content(&self) -> Content {
        let Self(numbers) = self;
        let mut activity = Activity {
            started: numbers[STARTED],
            died: numbers[DIED],
            cpu_ms: numbers[CPU_MS],
            ..Activity::default()
        };
        activity.waits.sum_ms = numbers[WAIT_MS];
        activity.runs.sum_ms = numbers[RUN_MS];
        activity.outcomes.copy_from_slice(&numbers[OUTCOMES]);
        activity.waits.buckets.copy_from_slice(&numbers[WAITS]);
        activity.runs.buckets.copy_from_slice(&numbers[RUNS]);
        let depth = Depth {
            pending: numbers[PENDING],
            processing: numbers[PROCESSING],
            failed: numbers[FAILED],
            dead: numbers[DEAD],
        };
        let depth = (numbers[SAMPLED] > 0).then_some(depth);
        Content { activity, enqueued: numbers[ENQUEUED], depth }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let (sums, peaks) = self.0.split_at_mut(FIRST_PEAK);
        let (more, others) = other.0.split_at(FIRST_PEAK);
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.saturating_add(*more);
        }
        for (peak, other) in peaks.iter_mut().zip(others) {
            *peak = (*peak).max(*other);
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        for (place, number) in (0..).zip(&self.0) {
            if *number > 0 {
                bytes.push(place);
                push_number(&mut bytes, *number);
            }
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut numbers = Self::ZERO;
        numbers.sum_up(bytes)?;
        Ok(numbers)
    }

    /// Adds an encoded row. Of the samples, too, the sum counts: they are of several queues. Answers with how many jobs
    /// the sample of the row counts as enqueued, if it has a sample.
    pub(super) fn sum_up(&mut self, bytes: &[u8]) -> Result<Option<u64>> {
        let (is_sampled, enqueued) = (self.0[SAMPLED], self.0[ENQUEUED]);
        each_number(bytes, |place, number| {
            // A later version may have added places.
            if let Some(sum) = self.0.get_mut(place) {
                *sum = sum.saturating_add(number);
            }
        })?;
        Ok((self.0[SAMPLED] > is_sampled).then(|| self.0[ENQUEUED] - enqueued))
    }
}

/// Reads each number of an encoded row with its place.
fn each_number(bytes: &[u8], mut each: impl FnMut(usize, u64)) -> Result<()> {
    let mut rest = bytes;
    while let Some((place, number)) = rest.split_first() {
        let (number, after) =
            first_number(number).ok_or_else(|| malformed("minute", "a number does not end"))?;
        each(usize::from(*place), number);
        rest = after;
    }
    Ok(())
}

/// How many jobs finished in an encoded row, as `Activity::finished` counts them.
pub(super) fn finished(bytes: &[u8]) -> Result<u64> {
    let mut finished: u64 = 0;
    each_number(bytes, |place, number| {
        if place == DIED || place == SUCCEEDED {
            finished = finished.saturating_add(number);
        }
    })?;
    Ok(finished)
}

#[expect(clippy::cast_possible_truncation, reason = "the other bits follow in the next byte")]
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > u64::from(PART) {
        bytes.push(number as u8 | MORE);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The first number, and the bytes after it.
fn first_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut shift) = (0, 0);
    for (at, byte) in bytes.iter().enumerate() {
        number |= u64::from(byte & PART).checked_shl(shift)?;
        if byte & MORE == 0 {
            return Some((number, &bytes[at + 1..]));
        }
        shift += 7;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number is different.
    fn full() -> Content {
        let values = [1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX, u64::MAX - 1];
        let mut numbers = Numbers([0; PLACES]);
        for (number, value) in numbers.0.iter_mut().zip(values.into_iter().chain(300..)) {
            *number = value;
        }
        numbers.content()
    }

    #[test]
    fn every_number_survives() {
        let with_sample = Content { depth: Some(Depth::default()), ..Content::default() };
        for content in [Content::default(), with_sample, full()] {
            let bytes = Numbers::of(&content).encode();
            assert_eq!(Numbers::decode(&bytes).expect("it is read").content(), content);
            assert_eq!(finished(&bytes).expect("it is read"), content.activity.finished());
            let sampled = content.depth.map(|_| content.enqueued);
            assert_eq!(Numbers::ZERO.clone().sum_up(&bytes).expect("it is read"), sampled);
        }
        let places: Vec<u64> = Numbers::of(&full()).0.into();
        assert!(places.iter().all(|number| *number > 0), "every place has its number: {places:?}");
    }

    #[test]
    fn zeros_take_no_space() {
        let mut content = Content::default();
        assert!(Numbers::of(&content).encode().is_empty());
        (content.activity.started, content.activity.cpu_ms) = (1, 300);
        assert_eq!(Numbers::of(&content).encode(), [0, 1, 2, 0xac, 0x02]);
    }

    #[test]
    fn counts_are_summed_up_and_the_deepest_sample_counts() {
        let depth = |pending, dead| Some(Depth { pending, dead, ..Depth::default() });
        let mut one = Content { enqueued: 2, depth: depth(3, 1), ..Content::default() };
        one.activity.started = u64::MAX - 1;
        let mut other = Content { enqueued: 5, depth: depth(2, 4), ..Content::default() };
        other.activity.started = 7;
        let mut sum = Numbers::of(&one);
        sum.add(&Numbers::of(&other));
        let sum = sum.content();
        assert_eq!((sum.enqueued, sum.depth, sum.activity.started), (7, depth(3, 4), u64::MAX));
    }

    #[test]
    fn a_row_of_a_later_version_is_read_and_a_broken_one_refused() {
        let mut bytes = Numbers::of(&full()).encode();
        bytes.extend([200, 0xff, 3]);
        assert_eq!(Numbers::decode(&bytes).expect("it is read").content(), full());
        for broken in [&[0][..], &[0, MORE], &[0, 1, 1, MORE | 1], &[[0; 1].as_slice(), &[0xff; 11]].concat()]
        {
            assert!(Numbers::decode(broken).is_err(), "{broken:?}");
        }
    }
}
