//! Durations: an accepted duration survives a round trip, and stays within the limit.

use std::time::Duration;

use domain::values::span::{MAX_SPAN, format_span, parse_span, span_from_seconds};

use super::message;
use super::numbers::Numbers;

pub const TOKENS: &[&str] = &[
    "ms",
    "s",
    "m",
    "h",
    "d",
    "w",
    "y",
    "mo",
    "us",
    "ns",
    "PT",
    "P",
    "T",
    "-",
    "+",
    ".",
    "e",
    "1e400",
    "NaN",
    "inf",
    "999999999999",
    "9223372036854775808",
    "100y",
    "36600d",
    "0.0000001",
    " ",
    ",",
    ":",
    "ago",
    "hours",
];

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_span(&text) {
        Ok(span) => {
            check(span);
            if let Some(seconds) = whole_seconds(&text) {
                assert_eq!(span, Duration::from_secs(seconds));
            }
        }
        Err(error) => {
            message::check(&error, text.as_bytes());
            let limit = MAX_SPAN.as_secs();
            assert!(
                whole_seconds(&text).is_none_or(|seconds| seconds > limit),
                "{text} is a number of seconds"
            );
        }
    }
    match span_from_seconds(Numbers(data).float()) {
        Ok(span) => check(span),
        // The message may contain a float with 300 digits.
        Err(error) => message::check(&error, &[0; 400]),
    }
}

fn check(span: Duration) {
    assert!(span <= MAX_SPAN, "{span:?} is too long");
    assert_eq!(span.subsec_nanos() % 1_000_000, 0, "{span:?} is not a whole number of milliseconds");
    assert_eq!(parse_span(&format_span(span)), Ok(span));
}

/// The value of a text of digits only.
fn whole_seconds(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}
