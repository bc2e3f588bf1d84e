//! How many jobs a queue has at a moment, and the share of a count that falls into a time.

use crate::values::timestamp::Timestamp;

/// The jobs of a queue that are not finished, and the dead ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    pub pending: u64,
    pub processing: u64,
    pub failed: u64,
    pub dead: u64,
}

/// The part of `count`, spread evenly over the time from `from` to `to`, that falls after `since`.
pub fn share_after(since: Timestamp, count: u64, from: Timestamp, to: Timestamp) -> u64 {
    if from >= since || from >= to {
        return if to > since { count } else { 0 };
    }
    let (part, whole) = (to.since(since).as_millis(), to.since(from).as_millis());
    u64::try_from((u128::from(count) * part + whole / 2) / whole).unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_spread_over_the_time_that_it_covers() {
        let at = Timestamp::from_millis;
        for (from, to, share) in [
            (100, 160, 60),
            (130, 160, 60),
            (40, 160, 30),
            (0, 120, 10),
            (0, 100, 0),
            (0, 99, 0),
            (160, 160, 60),
            (170, 160, 60),
        ] {
            assert_eq!(share_after(at(100), 60, at(from), at(to)), share, "{from} to {to}");
        }
        assert_eq!(share_after(at(100), u64::MAX, at(0), at(200)), u64::MAX / 2 + 1);
    }
}
