//! The times at which a schedule fires.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::cron::{CronError, CronExpression};
use crate::values::clock::Clock;
use crate::values::span::format_span;
use crate::values::timestamp::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// Whenever the clock of this zone shows a matching time.
    Cron { line: CronExpression, zone: TimeZone },
    /// At every multiple of this period, counted from when the schedule was added, so that it does not drift.
    Every(Duration),
    /// Once, at this time.
    At(Timestamp),
}

pub const MIN_PERIOD: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhenError {
    #[error("invalid cron expression `{line}`")]
    Cron {
        line: String,
        #[source]
        source: CronError,
    },
    #[error("the cron expression `{0}` never fires: no such day exists")]
    Never(String),
    #[error("`{0}` is in the past")]
    Past(Timestamp),
    #[error("a period of {} is too short; the minimum is {}", format_span(*.0), format_span(MIN_PERIOD))]
    TooOften(Duration),
    #[error("the first run would be after the year 9999")]
    TooLate,
}

impl When {
    pub fn cron(line: &str, zone: TimeZone) -> Result<Self, WhenError> {
        let parsed = line.parse().map_err(|source| WhenError::Cron { line: line.to_owned(), source });
        Ok(Self::Cron { line: parsed?, zone })
    }

    pub fn every(period: Duration) -> Result<Self, WhenError> {
        if period < MIN_PERIOD {
            return Err(WhenError::TooOften(period));
        }
        Ok(Self::Every(period))
    }

    /// The first occurrence of a schedule that is added now.
    pub fn first(&self, now: Timestamp) -> Result<Timestamp, WhenError> {
        self.next_after(now, now).ok_or_else(|| match self {
            Self::Cron { line, .. } => WhenError::Never(line.to_string()),
            Self::Every(_) => WhenError::TooLate,
            Self::At(at) => WhenError::Past(*at),
        })
    }

    /// The first occurrence after `after` of a schedule that was added at `added_at`.
    pub fn next_after(&self, added_at: Timestamp, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { line, zone } => line.next_after(zone, after),
            Self::Every(period) => {
                let passed = after.since(added_at).as_millis() / period.as_millis();
                let millis = u64::try_from((passed + 1) * period.as_millis()).ok()?;
                added_at.checked_add(Duration::from_millis(millis))
            }
            Self::At(at) => (*at > after).then_some(*at),
        }
    }

    /// The latest occurrence up to `now`, if there is one after `from`. It searches backwards from the end in growing
    /// steps, because a schedule may have had millions of occurrences while no worker ran.
    pub(super) fn latest_until(
        &self,
        added_at: Timestamp,
        from: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let next_by_now =
            |after: i64| self.next_after(added_at, Timestamp::from_millis(after)).filter(|next| *next <= now);
        let (first, last) = (from.as_millis(), now.as_millis());
        let (mut none_after, mut step) = (last, 1_000);
        let mut some_after = loop {
            let after = (last - step).max(first);
            if next_by_now(after).is_some() {
                break after;
            }
            if after == first {
                return None;
            }
            (none_after, step) = (after, step * 2);
        };
        while none_after - some_after > 1 {
            let middle = some_after + (none_after - some_after) / 2;
            if next_by_now(middle).is_some() {
                some_after = middle;
            } else {
                none_after = middle;
            }
        }
        next_by_now(some_after)
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Every(_) => "every",
            Self::At(_) => "at",
        }
    }

    /// The argument of `--cron`, `--every` or `--at`.
    pub fn expression(&self) -> String {
        match self {
            Self::Cron { line, .. } => line.to_string(),
            Self::Every(period) => format_span(*period),
            Self::At(at) => at.to_string(),
        }
    }

    /// The name of the time zone, if it matters.
    pub fn zone_name(&self) -> Option<&str> {
        match self {
            Self::Cron { zone, .. } => Some(zone.iana_name().unwrap_or("UTC")),
            Self::Every(_) | Self::At(_) => None,
        }
    }

    /// A time as it is shown to people: that of a cron expression in its own zone.
    pub fn shown(&self, at: Timestamp, clock: &Clock) -> String {
        match self {
            Self::Cron { zone, .. } => clock.time_in(at, zone),
            Self::Every(_) | Self::At(_) => clock.time(at),
        }
    }

    /// As its `Display`, for people.
    pub fn in_short(&self, clock: &Clock) -> String {
        match self {
            Self::At(at) => format!("at {}", clock.time(*at)),
            Self::Cron { .. } | Self::Every(_) => self.to_string(),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { line, .. } => write!(out, "{line}"),
            Self::Every(period) => write!(out, "every {}", format_span(*period)),
            Self::At(at) => write!(out, "at {at}"),
        }
    }
}
