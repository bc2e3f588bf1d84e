//! A point in time: whole milliseconds since 1970 in UTC.
//!
//! Formatted and parsed as RFC 3339. The range is the years 1 to 9999, which is what RFC 3339 can express.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};

use crate::json::{read_as_text, text};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    #[error("not a valid RFC 3339 time: `{0}`; write 2026-01-31T09:30:00Z")]
    Malformed(String),
    #[error("time has no time zone: `{0}`; end it with Z or an offset such as +02:00")]
    NoZone(String),
    #[error("time outside the years 1 to 9999: `{0}`")]
    OutOfRange(String),
}

const NANOS_PER_MILLI: i128 = 1_000_000;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl Timestamp {
    pub const EPOCH: Self = Self(0);
    pub const MIN: Self = Self(-62_135_596_800_000);
    pub const MAX: Self = Self(253_402_300_799_999);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This time plus `duration`; `None` after the year 9999.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let millis = i64::try_from(duration.as_millis()).ok()?;
        let sum = Self(self.0.checked_add(millis)?);
        (sum <= Self::MAX).then_some(sum)
    }

    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }

    /// This time minus `duration`, but not before the minimum.
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis)).max(Self::MIN)
    }

    /// The time since `earlier`; zero if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match EPOCH.checked_add(SignedDuration::from_millis(self.0)) {
            Ok(at) => {
                // A list has hundreds of times, and `write!` takes longer than all else of them.
                let mut text = *b"0000-00-00T00:00:00.000Z";
                put_digits(&mut text[..4], at.year());
                for (place, number) in
                    [(5, at.month()), (8, at.day()), (11, at.hour()), (14, at.minute()), (17, at.second())]
                {
                    put_digits(&mut text[place..place + 2], number.into());
                }
                put_digits(&mut text[20..23], at.millisecond());
                out.write_str(std::str::from_utf8(&text).unwrap_or_default())
            }
            Err(_) => write!(out, "{}ms", self.0),
        }
    }
}

/// The last digits of a number that is not negative: no stored time is before the year 0.
fn put_digits(place: &mut [u8], mut number: i16) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let malformed = || TimestampError::Malformed(text.to_owned());
        // The parser accepts annotations such as `[Europe/Berlin]`, which may contradict the offset.
        if text.contains('[') {
            return Err(malformed());
        }
        let pieces = Pieces::parse(text).map_err(|_| malformed())?;
        let time = pieces.time().ok_or_else(malformed)?;
        let offset = match pieces.offset() {
            None => return Err(TimestampError::NoZone(text.to_owned())),
            Some(PiecesOffset::Zulu) => 0,
            Some(PiecesOffset::Numeric(numeric)) => i64::from(numeric.offset().seconds()),
            Some(_) => return Err(malformed()),
        };
        let since_epoch = pieces.date().to_datetime(time).duration_since(EPOCH);
        // Rounded down to whole milliseconds, also before 1970.
        let millis = since_epoch.as_nanos().div_euclid(NANOS_PER_MILLI);
        let millis = i64::try_from(millis).map_err(|_| malformed())?;
        let at = Self(millis - offset * 1000);
        if at < Self::MIN || at > Self::MAX {
            return Err(TimestampError::OutOfRange(text.to_owned()));
        }
        Ok(at)
    }
}

read_as_text!(text: Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_is_parsed_and_formatted() {
        for (text, written) in [
            ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"),
            ("2026-01-31T09:30:00.1234+02:00", "2026-01-31T07:30:00.123Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.000Z"),
            ("1969-12-31T23:59:58.1239Z", "1969-12-31T23:59:58.123Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
            ("0000-12-31T23:00:00-01:00", "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(text.parse::<Timestamp>().expect(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        let parse = |text: &str| text.parse::<Timestamp>();
        assert!(matches!(parse("2026-01-31T09:30:00"), Err(TimestampError::NoZone(_))));
        for text in ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "0000-12-31T23:59:59Z"] {
            assert!(matches!(parse(text), Err(TimestampError::OutOfRange(_))), "{text}");
        }
        for text in [
            "",
            "soon",
            "2026-01-31",
            "2026-02-30T00:00:00Z",
            "12:00Z",
            "2026-01-31T09:30:00Z[Europe/Berlin]",
            "2026-01-31T09:30:00[Europe/Berlin]",
        ] {
            assert!(matches!(parse(text), Err(TimestampError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn adding_stops_at_the_maximum() {
        assert_eq!(Timestamp::MAX.checked_add(Duration::from_millis(1)), None);
        assert_eq!(Timestamp::EPOCH.saturating_add(Duration::MAX), Timestamp::MAX);
    }
}
