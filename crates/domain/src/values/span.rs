//! Durations: `90`, `90s`, `1m30s`, `7d`, `PT1M30S`. A number without a unit is seconds.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// The longest duration that is accepted, so that adding it to a time does not overflow.
pub const MAX_SPAN: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    #[error("not a valid duration: `{0}`; write 90, 90s, 1m30s or PT1M30S")]
    Malformed(String),
    #[error("duration must not be negative: `{0}`")]
    Negative(String),
    #[error("duration longer than 100 years: `{0}`")]
    TooLong(String),
}

/// Parses a duration, rounded down to whole milliseconds.
pub fn parse_span(text: &str) -> Result<Duration, SpanError> {
    let trimmed = text.trim();
    if let Ok(seconds) = trimmed.parse::<f64>() {
        return span_from_seconds(seconds);
    }
    let malformed = || SpanError::Malformed(text.to_owned());
    // `15:24:09` looks like a time of day.
    if trimmed.contains(':') {
        return Err(malformed());
    }
    let span: Span = trimmed.parse().map_err(|_| malformed())?;
    let signed = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| malformed())?;
    let whole = Duration::try_from(signed).map_err(|_| SpanError::Negative(text.to_owned()))?;
    within_limit(whole, text)
}

/// Converts a number of seconds, from a JSON number or a number without a unit.
pub fn span_from_seconds(seconds: f64) -> Result<Duration, SpanError> {
    if seconds.is_nan() {
        return Err(SpanError::Malformed(seconds.to_string()));
    }
    if seconds < 0.0 {
        return Err(SpanError::Negative(seconds.to_string()));
    }
    let whole = Duration::try_from_secs_f64(seconds).map_err(|_| SpanError::TooLong(seconds.to_string()))?;
    within_limit(whole, &seconds.to_string())
}

fn within_limit(span: Duration, text: &str) -> Result<Duration, SpanError> {
    if span > MAX_SPAN {
        return Err(SpanError::TooLong(text.to_owned()));
    }
    Ok(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
}

/// Formats a duration so that [`parse_span`] returns the same value: `1m30s`, `500ms`, `7d`.
pub fn format_span(span: Duration) -> String {
    const UNITS: [(u128, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let mut rest = span.as_millis();
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (millis, unit) in UNITS {
        if rest >= millis {
            let _ = write!(text, "{}{unit}", rest / millis);
            rest %= millis;
        }
    }
    text
}

/// As [`format_span`], rounded down to whole seconds.
pub fn format_seconds(span: Duration) -> String {
    format_span(Duration::from_secs(span.as_secs()))
}

/// A duration as its two largest units, rounded: `3h20m`, `45s`.
pub fn rough_span(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    /// From here on, a duration rounds to a whole second.
    const NEARLY_A_SECOND: u128 = 950;
    if span.as_millis() < NEARLY_A_SECOND {
        return format!("{}ms", span.as_millis());
    }
    let mut seconds = (span + Duration::from_millis(500)).as_secs().max(1);
    // Rounding may reach the next larger unit, whose rounding then applies: 59m59s are 1h.
    loop {
        let largest = UNITS.iter().position(|(length, _)| seconds >= *length).unwrap_or(3);
        let (length, unit) = UNITS[largest];
        let smaller = UNITS.get(largest + 1).filter(|_| seconds / length < 10);
        let step = smaller.map_or(length, |(smaller, _)| *smaller);
        let rounded = (seconds + step / 2) / step * step;
        if rounded != seconds {
            seconds = rounded;
            continue;
        }
        let whole = format!("{}{unit}", seconds / length);
        return match smaller {
            Some((smaller, name)) if !seconds.is_multiple_of(length) => {
                format!("{whole}{}{name}", seconds % length / smaller)
            }
            Some(_) | None => whole,
        };
    }
}

/// An optional duration as a field in JSON.
pub(crate) mod field {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::json::{check, given, span_text};

    struct Span(Duration);

    impl<'de> Deserialize<'de> for Span {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            check(super::parse_span(&span_text(deserializer)?)).map(Self)
        }
    }

    #[expect(clippy::ref_option, reason = "serde requires this signature")]
    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        span.map(super::format_span).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(given::<Span, _>(deserializer)?.map(|span| span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_is_parsed() {
        for (text, millis) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("1m30s", 90_000),
            ("PT1M30S", 90_000),
            ("0.5", 500),
            ("500ms", 500),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("1w", 604_800_000),
            ("0", 0),
        ] {
            assert_eq!(parse_span(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused() {
        for text in
            ["", " ", "soon", "5 parsecs", "NaN", "1y", "1mo", "--5s", "15:24:09", "00:05", "1h 00:05:00"]
        {
            assert!(matches!(parse_span(text), Err(SpanError::Malformed(_))), "{text}");
        }
        for text in ["-1", "-5s", "-PT5S"] {
            assert!(matches!(parse_span(text), Err(SpanError::Negative(_))), "{text}");
        }
        for text in ["1e400", "1e12", "inf", "99999999h"] {
            assert!(matches!(parse_span(text), Err(SpanError::TooLong(_))), "{text}");
        }
    }

    #[test]
    fn durations_survive_a_round_trip() {
        for millis in [0, 1, 999, 1_000, 61_001, 604_800_000, 90_061_001] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse_span(&format_span(span)), Ok(span));
        }
    }

    #[test]
    fn durations_have_at_most_two_units_and_are_rounded() {
        for (millis, text) in [
            (0, "0ms"),
            (949, "949ms"),
            (950, "1s"),
            (1_499, "1s"),
            (1_990, "2s"),
            (5_000, "5s"),
            (90_000, "1m30s"),
            (599_600, "10m"),
            (720_000, "12m"),
            (749_000, "12m"),
            (751_000, "13m"),
            (899_980, "15m"),
            (3_569_000, "59m"),
            (3_599_980, "1h"),
            (12_000_000, "3h20m"),
            (86_370_000, "1d"),
            (180_000_000, "2d2h"),
            (863_000_000, "10d"),
            (864_000_000, "10d"),
        ] {
            assert_eq!(rough_span(Duration::from_millis(millis)), text);
        }
    }
}
