//! A calendar day in UTC.

use std::fmt;
use std::str::FromStr;

use super::timestamp::{Timestamp, TimestampError};

const MILLIS_PER_DAY: i64 = 24 * 3_600 * 1_000;

/// Days since 1970-01-01. Written as `2026-01-31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    pub fn of(at: Timestamp) -> Self {
        Self(at.as_millis().div_euclid(MILLIS_PER_DAY))
    }

    #[must_use]
    pub fn days_earlier(self, days: u32) -> Self {
        Self(self.0.saturating_sub(i64::from(days)))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let midnight = Timestamp::from_millis(self.0.saturating_mul(MILLIS_PER_DAY)).to_string();
        out.write_str(midnight.split('T').next().unwrap_or(&midnight))
    }
}

impl FromStr for Day {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        format!("{text}T00:00:00Z").parse().map(Self::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_utc() {
        for (at, day) in [
            ("2026-01-31T00:00:00Z", "2026-01-31"),
            ("2026-01-31T23:59:59.999Z", "2026-01-31"),
            ("2026-02-01T00:00:00+01:00", "2026-01-31"),
            ("1969-12-31T23:59:59Z", "1969-12-31"),
        ] {
            let found = Day::of(at.parse().expect("valid time"));
            assert_eq!(found.to_string(), day);
            assert_eq!(day.parse(), Ok(found));
        }
    }

    #[test]
    fn subtracting_days_crosses_month_boundaries() {
        let day: Day = "2024-03-01".parse().expect("valid day");
        assert_eq!(day.days_earlier(1).to_string(), "2024-02-29");
    }

    #[test]
    fn invalid_dates_are_refused() {
        for bad in ["", "2024-02-30", "2024-03-01.1", "yesterday"] {
            assert!(bad.parse::<Day>().is_err(), "{bad}");
        }
    }
}
