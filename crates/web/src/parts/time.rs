//! Times. The server writes them in UTC; the script shows them in the reader's zone, and keeps ages current.

use std::time::Duration;

use maud::{Markup, html};

use domain::values::clock::{Clock, TimeFormat};
use domain::values::span::rough_span;
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;

/// How far a time is from now, with the time itself as its title.
pub(crate) fn ago(now: Timestamp, at: Timestamp) -> Markup {
    let clock = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
    let distance = if at > now { clock.until(at) } else { clock.ago(at) };
    html! { time datetime=(at) data-show="ago" title=(at) { (distance) } }
}

/// How long it takes until something is due; `due now` if that time has passed.
pub(crate) fn due(now: Timestamp, at: Timestamp) -> Markup {
    let clock = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
    let distance = if at > now { clock.until(at) } else { "due now".to_owned() };
    html! { time datetime=(at) data-show="due" title=(at) { (distance) } }
}

/// A time on the clock.
pub(crate) fn clock(now: Timestamp, at: Timestamp) -> Markup {
    let clock = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
    html! { time datetime=(at) data-show="clock" title=(at) { (clock.time(at)) } }
}

/// The time of a line of output, to the millisecond.
pub(crate) fn of_line(now: Timestamp, at: Timestamp) -> Markup {
    let clock = Clock::new(now, TimeFormat::Short(TimeZone::UTC));
    html! { time datetime=(at) data-show="line" { (clock.time_of_line(at)) } }
}

/// A duration to two digits or so: `410ms`, `4.2s`, `3m20s`.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_millis();
    if (1_000..10_000).contains(&millis) {
        return format!("{}.{}s", millis / 1_000, millis % 1_000 / 100);
    }
    rough_span(span)
}

/// A duration, or a dash where there is none.
pub(crate) fn span_or_dash(known: Option<Duration>) -> String {
    known.map_or_else(|| "–".to_owned(), span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overdue_time_is_due_now() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let now = at("2026-11-17T01:00:00Z");
        let shown = |time| due(now, time).into_string();
        assert!(shown(at("2026-11-17T00:58:00Z")).contains(">due now</time>"));
        assert!(shown(at("2026-11-17T01:02:00Z")).contains(">in 2m</time>"));
    }

    #[test]
    fn durations_are_short() {
        for (millis, shown) in [(3, "3ms"), (410, "410ms"), (4_230, "4.2s"), (200_000, "3m20s")] {
            assert_eq!(span(Duration::from_millis(millis)), shown);
        }
        assert_eq!(span_or_dash(None), "–");
    }
}
