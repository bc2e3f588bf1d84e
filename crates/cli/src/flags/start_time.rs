//! Start times as flags: RFC 3339 times and durations as in JSON, and times as people type them.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::text::printable;
use domain::values::clock::confirmation;
use domain::values::human_time::{HumanTimeError, parse_human_time};
use domain::values::span::{SpanError, parse_span};
use domain::values::timestamp::{Timestamp, TimestampError};
use sys::clock::{Clock, SystemClock};
use sys::zone;

/// When a job starts at the earliest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StartTime {
    /// A time that means the same everywhere.
    Exact(Timestamp),
    /// A time that depends on the present and on this zone. It is confirmed in full.
    Relative(Timestamp, TimeZone),
    After(Duration),
}

impl StartTime {
    /// The fields `run_at` and `delay`.
    fn fields(&self) -> (Option<Timestamp>, Option<Duration>) {
        match self {
            Self::Exact(at) | Self::Relative(at, _) => (Some(*at), None),
            Self::After(delay) => (None, Some(*delay)),
        }
    }

    /// Tells the user on the terminal how a relative time was understood.
    pub(crate) fn confirm(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Relative(at, zone) => {
                context.note(&confirmation(*at, now(), zone))?;
                if *zone == zone::local() { hint_unknown_zone(context) } else { Ok(()) }
            }
            Self::Exact(_) | Self::After(_) => Ok(()),
        }
    }
}

/// The fields `run_at` and `delay` of a job with these flags.
pub(crate) fn start_fields(
    run_at: Option<&StartTime>,
    delay: Option<&StartTime>,
) -> (Option<Timestamp>, Option<Duration>) {
    match (run_at, delay) {
        (None, None) => (None, None),
        (Some(only), None) | (None, Some(only)) => only.fields(),
        // Both fields are set, so that the job is refused.
        (Some(run_at), Some(delay)) => {
            (run_at.fields().0.or(delay.fields().0), delay.fields().1.or(Some(Duration::ZERO)))
        }
    }
}

/// Prints a hint if `TZ` names a zone that does not exist, so that another one was used.
pub(crate) fn hint_unknown_zone(context: &Context) -> Result<(), Failure> {
    let Some(name) = zone::unknown_name_in_environment() else {
        return Ok(());
    };
    let zone = zone::local();
    let used = zone.iana_name().unwrap_or("UTC");
    context.hint(&format!("the time zone `{}` in TZ is unknown; {used} was used", printable(&name)))
}

fn now() -> Timestamp {
    Timestamp::from_millis(SystemClock.wall_millis())
}

/// Parses the argument of `--run-at`.
pub(crate) fn parse_run_at(text: &str) -> Result<StartTime, String> {
    parse_time(text, zone::local).map_err(|error| error.to_string())
}

/// Parses a time that people typed, in a zone that is looked up only if it matters.
pub(crate) fn parse_time(text: &str, zone: impl FnOnce() -> TimeZone) -> Result<StartTime, HumanTimeError> {
    match text.parse() {
        Ok(at) => Ok(StartTime::Exact(at)),
        Err(TimestampError::OutOfRange(text)) => Err(HumanTimeError::OutOfRange(text)),
        Err(TimestampError::Malformed(_) | TimestampError::NoZone(_)) => {
            let zone = zone();
            parse_human_time(text, now(), &zone).map(|at| StartTime::Relative(at, zone))
        }
    }
}

/// Parses the argument of `--delay`: a duration, or a time to wait for.
pub(crate) fn parse_delay(text: &str) -> Result<StartTime, String> {
    match parse_span(text) {
        Ok(delay) => Ok(StartTime::After(delay)),
        Err(SpanError::Malformed(_)) => parse_time(text, zone::local).map_err(|error| match error {
            HumanTimeError::Malformed(text) => {
                format!("not a duration or a time: `{text}`; write 90, 1h30m or \"tomorrow 3am\"")
            }
            HumanTimeError::OutOfRange(_) | HumanTimeError::Span(_) => error.to_string(),
        }),
        Err(error @ (SpanError::Negative(_) | SpanError::TooLong(_))) => Err(error.to_string()),
    }
}
