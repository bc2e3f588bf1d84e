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

/// A duration as its two largest units: `3h20m`, `45s`.
pub fn rough_span(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = span.as_secs();
    if seconds == 0 {
        return format!("{}ms", span.subsec_millis());
    }
    let largest = UNITS.iter().position(|(length, _)| seconds >= *length).unwrap_or(3);
    let (length, unit) = UNITS[largest];
    let whole = format!("{}{unit}", seconds / length);
    match UNITS.get(largest + 1) {
        Some((smaller, name)) if seconds / length < 10 && seconds % length >= *smaller => {
            format!("{whole}{}{name}", seconds % length / smaller)
        }
        _ => whole,
    }
}

/// An optional duration as a field in JSON.
pub(crate) mod field {
    use std::time::Duration;

    use serde::{Deserializer, Serialize, Serializer};

    use crate::json::{check, span_text};

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
        check(super::parse_span(&span_text(deserializer)?)).map(Some)
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
        for text in ["", " ", "soon", "5 parsecs", "NaN", "1y", "1mo", "--5s"] {
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
    fn durations_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "0ms"),
            (5, "5s"),
            (90, "1m30s"),
            (720, "12m"),
            (12_000, "3h20m"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(rough_span(Duration::from_secs(seconds)), text);
        }
    }
}
