//! Times and ages of jobs, short enough for a column.

use std::time::Duration;

use crate::state::State;
use domain::job::Job;
use domain::values::clock::{Clock, TimeFormat};
use domain::values::span::rough_span;
use domain::values::timestamp::Timestamp;
use jiff::tz::TimeZone;

/// The clock of the screen: the time of the store when the data were read, and how long ago that was.
pub(crate) fn clock(state: &State) -> Clock {
    let age = state.read_at.filter(|_| !state.is_frozen).map_or(Duration::ZERO, |at| at.elapsed());
    let now = state.snapshot.as_ref().map_or(Timestamp::EPOCH, |snapshot| snapshot.at.saturating_add(age));
    let zone = if state.is_utc { TimeZone::UTC } else { state.fixed.local.clone() };
    Clock::new(now, TimeFormat::Short(zone))
}

/// `0.4s`, `41s`, `3m20s`
pub(crate) fn short_span(span: Duration) -> String {
    if span < Duration::from_secs(10) && span >= Duration::from_millis(50) {
        return format!("{:.1}s", span.as_secs_f64());
    }
    rough_span(span)
}

/// How long the latest attempt took, or has taken so far.
pub(crate) fn ran(job: &Job, now: Timestamp) -> String {
    let Some(began) = job.latest.started_at else {
        return String::new();
    };
    let end = match (job.life.state.lease(), job.life.state.finished_at()) {
        (Some(_), _) => now,
        (None, Some(finished)) => finished,
        (None, None) => return String::new(),
    };
    short_span(end.since(began))
}
