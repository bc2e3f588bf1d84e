//! Times as people read them: short and in their own time zone on a terminal, RFC 3339 elsewhere.
//!
//! Every verb that shows a time to people formats it here.

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;

use super::span::rough_span;
use super::timestamp::Timestamp;

/// How times are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TimeFormat {
    /// RFC 3339 in UTC, with milliseconds: for programs, and wherever a reader may be one.
    #[default]
    Full,
    /// On the clock of this zone, as short as possible.
    Short(TimeZone),
}

/// The present, and how times are shown at present.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    pub now: Timestamp,
    format: TimeFormat,
}

/// Times nearer than this are shown with the day of the week instead of the date.
const WEEK_DAYS: i64 = 7;

impl Clock {
    pub fn new(now: Timestamp, format: TimeFormat) -> Self {
        Self { now, format }
    }

    /// `15:24:09` today, `Mon 03:00` within a week, else `2026-11-03 03:00`.
    pub fn time(&self, at: Timestamp) -> String {
        self.short(at, ["%H:%M:%S", "%a %H:%M", "%Y-%m-%d %H:%M"])
    }

    /// As [`Self::time`], to the millisecond: `15:24:09.250`, `Mon 03:00:00.125`.
    pub fn time_of_line(&self, at: Timestamp) -> String {
        self.short(at, ["%H:%M:%S%.3f", "%a %H:%M:%S%.3f", "%Y-%m-%d %H:%M:%S%.3f"])
    }

    /// In the format for today, this week, or any time.
    fn short(&self, at: Timestamp, [today, this_week, any]: [&str; 3]) -> String {
        let TimeFormat::Short(zone) = &self.format else {
            return at.to_string();
        };
        let (Some(shown), Some(now)) = (in_zone(at, zone), in_zone(self.now, zone)) else {
            return at.to_string();
        };
        let days = (shown.date() - now.date()).get_days();
        let format = match i64::from(days).abs() {
            0 => today,
            // A week from now is the same day of the week.
            1..WEEK_DAYS => this_week,
            _ => any,
        };
        shown.strftime(format).to_string()
    }

    /// A time in a zone that matters more than that of the reader, in full; RFC 3339 where every time is.
    pub fn time_in(&self, at: Timestamp, zone: &TimeZone) -> String {
        match (&self.format, in_zone(at, zone)) {
            (TimeFormat::Short(_), Some(shown)) => shown.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
            (TimeFormat::Short(_) | TimeFormat::Full, _) => at.to_string(),
        }
    }

    /// A time, and its distance from now.
    pub fn moment(&self, at: Timestamp) -> String {
        let distance = if at > self.now { self.until(at) } else { self.ago(at) };
        format!("{} ({distance})", self.time(at))
    }

    /// `3m20s ago`
    pub fn ago(&self, at: Timestamp) -> String {
        if self.now.since(at) < Duration::from_secs(1) {
            return "just now".to_owned();
        }
        format!("{} ago", self.elapsed(at))
    }

    /// `in 3m20s`
    pub fn until(&self, at: Timestamp) -> String {
        format!("in {}", self.left(at))
    }

    /// How much time has passed since then: `3m20s`.
    pub fn elapsed(&self, since: Timestamp) -> String {
        rough_span(self.now.since(since))
    }

    /// How much time is left until then: `3m20s`.
    pub fn left(&self, until: Timestamp) -> String {
        rough_span(until.since(self.now))
    }
}

/// Confirms how a time was understood: `runs at 2027-01-01 10:00:00 +01:00, in 2 days`.
pub fn confirmation(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let Some(shown) = in_zone(at, zone) else {
        return format!("runs at {at}");
    };
    let shown = shown.strftime("%Y-%m-%d %H:%M:%S %:z");
    if at <= now {
        return format!("runs now: {shown} has passed");
    }
    format!("runs at {shown}, in {}", in_words(at.since(now)))
}

/// A duration in its largest unit of which it has at least two: `36 hours`, `2 days`.
fn in_words(span: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds")];
    let seconds = (span.as_millis() + 500) / 1_000;
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    let rounded = |length: u64| (seconds + length / 2) / length;
    let (length, unit) =
        UNITS.into_iter().find(|(length, _)| seconds >= 2 * length).unwrap_or((1, "seconds"));
    match (rounded(length), unit) {
        (0 | 1, _) => "1 second".to_owned(),
        (count, unit) => format!("{count} {unit}"),
    }
}

fn in_zone(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    Some(jiff::Timestamp::from_millisecond(at.as_millis()).ok()?.to_zoned(zone.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn berlin() -> TimeZone {
        TimeZone::get("Europe/Berlin").expect("a zone")
    }

    #[test]
    fn a_time_is_as_short_as_its_distance_allows() {
        // A Tuesday, 00:30 on the clock.
        let clock = Clock::new(at("2026-11-16T23:30:00Z"), TimeFormat::Short(berlin()));
        for (time, shown) in [
            ("2026-11-16T23:30:00Z", "00:30:00"),
            ("2026-11-17T14:24:09.999Z", "15:24:09"),
            ("2026-11-16T22:59:59Z", "Mon 23:59"),
            ("2026-11-17T23:00:00Z", "Wed 00:00"),
            ("2026-11-23T02:00:00Z", "Mon 03:00"),
            ("2026-11-24T02:00:00Z", "2026-11-24 03:00"),
            ("2026-11-11T02:00:00Z", "Wed 03:00"),
            ("2026-11-10T02:00:00Z", "2026-11-10 03:00"),
            ("2025-11-17T02:00:00Z", "2025-11-17 03:00"),
        ] {
            assert_eq!(clock.time(at(time)), shown, "{time}");
        }
        for (time, shown) in [
            ("2026-11-17T14:24:09.25Z", "15:24:09.250"),
            ("2026-11-16T22:59:59.999Z", "Mon 23:59:59.999"),
            ("2025-11-17T02:00:00Z", "2025-11-17 03:00:00.000"),
        ] {
            assert_eq!(clock.time_of_line(at(time)), shown, "{time}");
        }
    }

    #[test]
    fn programs_get_utc_in_full() {
        let (now, then) = (at("2026-11-17T00:30:00Z"), at("2026-11-17T01:30:00Z"));
        let clock = Clock::new(now, TimeFormat::Full);
        assert_eq!(clock.time(then), "2026-11-17T01:30:00.000Z");
        assert_eq!(clock.time_of_line(then), "2026-11-17T01:30:00.000Z");
        assert_eq!(clock.time_in(then, &berlin()), "2026-11-17T01:30:00.000Z");
        assert_eq!(clock.moment(then), "2026-11-17T01:30:00.000Z (in 1h)");
        let short = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
        assert_eq!(short.moment(then), "01:30:00 (in 1h)");
        assert_eq!(short.time_in(then, &berlin()), "2026-11-17 02:30:00 CET");
    }

    #[test]
    fn a_confirmation_has_the_offset_and_the_distance() {
        let now = at("2026-12-30T09:00:00Z");
        for (time, shown) in [
            ("2027-01-01T09:00:00Z", "runs at 2027-01-01 10:00:00 +01:00, in 2 days"),
            ("2026-12-31T20:40:00Z", "runs at 2026-12-31 21:40:00 +01:00, in 36 hours"),
            ("2026-12-30T10:30:00Z", "runs at 2026-12-30 11:30:00 +01:00, in 90 minutes"),
            ("2026-12-30T09:00:01Z", "runs at 2026-12-30 10:00:01 +01:00, in 1 second"),
            ("2026-07-01T00:00:00Z", "runs now: 2026-07-01 02:00:00 +02:00 has passed"),
        ] {
            assert_eq!(confirmation(at(time), now, &berlin()), shown, "{time}");
        }
    }
}
