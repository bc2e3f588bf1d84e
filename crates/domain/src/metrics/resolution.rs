//! How fine the history is, and when it gets coarser.

use std::time::Duration;

use crate::values::timestamp::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3_600);
const MILLIS_PER_MINUTE: i64 = 60_000;

/// The time that a row of the history covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Minute,
    TenMinutes,
    Hour,
    /// The time before all other rows.
    Rest,
}

impl Resolution {
    pub const ALL: [Self; 4] = [Self::Minute, Self::TenMinutes, Self::Hour, Self::Rest];

    /// In minutes; 0 for the rest.
    pub fn minutes(self) -> i64 {
        match self {
            Self::Minute => 1,
            Self::TenMinutes => 10,
            Self::Hour => 60,
            Self::Rest => 0,
        }
    }

    /// The first minute of the row that covers this minute.
    pub fn start_of(self, minute: i64) -> i64 {
        match self {
            Self::Rest => 0,
            Self::Minute | Self::TenMinutes | Self::Hour => minute - minute.rem_euclid(self.minutes()),
        }
    }
}

/// The minute that a time falls into, counted from 1970.
pub fn minute_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(MILLIS_PER_MINUTE)
}

/// When a minute begins.
pub fn start_of_minute(minute: i64) -> Timestamp {
    Timestamp::from_millis(minute.saturating_mul(MILLIS_PER_MINUTE))
}

/// Rows of one resolution that become part of coarser rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub from: Resolution,
    pub to: Resolution,
    /// The age of the rows.
    pub after: Duration,
}

/// All folds, for a history that is kept this long.
pub fn folds(retain: Option<Duration>) -> Vec<Fold> {
    let rest = |from| retain.map(|after| Fold { from, to: Resolution::Rest, after });
    let [minute, ten, hour] = [Resolution::Minute, Resolution::TenMinutes, Resolution::Hour];
    let coarser = [Fold { from: minute, to: ten, after: DAY }, Fold { from: ten, to: hour, after: 7 * DAY }];
    [minute, ten, hour].into_iter().filter_map(rest).chain(coarser).collect()
}

impl Fold {
    /// The first minute that is not folded. A coarser row is made of whole rows, so that it ends where the finer begin.
    pub fn end(self, now: Timestamp) -> i64 {
        self.to_whole(minute_of(now.saturating_sub(self.after)))
    }

    fn to_whole(self, minute: i64) -> i64 {
        match self.to {
            Resolution::Rest => minute,
            Resolution::Minute | Resolution::TenMinutes | Resolution::Hour => self.to.start_of(minute),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_belongs_to_the_row_that_begins_before_it() {
        for (resolution, minute, start) in [
            (Resolution::Minute, 125, 125),
            (Resolution::TenMinutes, 125, 120),
            (Resolution::TenMinutes, 120, 120),
            (Resolution::Hour, 125, 120),
            (Resolution::Hour, 119, 60),
            (Resolution::Hour, -1, -60),
            (Resolution::Rest, 125, 0),
        ] {
            assert_eq!(resolution.start_of(minute), start, "{resolution:?} {minute}");
        }
        assert_eq!(minute_of(Timestamp::from_millis(119_999)), 1);
        assert_eq!(minute_of(Timestamp::from_millis(-1)), -1);
        assert_eq!(start_of_minute(2), Timestamp::from_millis(120_000));
    }

    #[test]
    fn a_fold_ends_with_a_whole_row() {
        let now = start_of_minute(30_000_007);
        let ends: Vec<(Resolution, Resolution, i64)> =
            folds(Some(90 * DAY)).iter().map(|fold| (fold.from, fold.to, fold.end(now))).collect();
        let rest = 30_000_007 - 90 * 1_440;
        let (minute, ten, hour) = (Resolution::Minute, Resolution::TenMinutes, Resolution::Hour);
        assert_eq!(
            ends,
            [
                (minute, Resolution::Rest, rest),
                (ten, Resolution::Rest, rest),
                (hour, Resolution::Rest, rest),
                (minute, ten, 30_000_000 - 1_440),
                (ten, hour, 30_000_000 - 7 * 1_440),
            ]
        );
        assert_eq!(folds(None).len(), 2, "a history that is kept for ever still gets coarser");
    }
}
