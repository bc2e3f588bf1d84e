//! The charts of what ended and of how long it took, drawn on the server, with a table of the same numbers.

use std::fmt::Write;
use std::time::Duration;

use maud::{Markup, html};

use super::number::grouped;
use super::{sparkline, time};
use domain::job::outcome::OutcomeName;
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::metrics::history::{Point, Timeline};
use domain::metrics::resolution::start_of_minute;
use domain::values::span::format_span;
use domain::values::timestamp::Timestamp;

/// The height of the drawing, in its own units; it is stretched to its place.
const HEIGHT: u64 = 1_000;
/// The width of one step.
const STEP: u64 = 10;
/// With more steps than this, bars touch each other.
const MAX_SPACED: u64 = 120;

/// With more steps than this, the charts of durations have a value for several of them.
const MAX_VALUES: usize = 120;

/// What ended in one step, from the bottom of the bar to its top.
#[derive(Clone, Copy)]
struct Bar {
    at: Timestamp,
    step: u64,
    done: u64,
    failed: u64,
    died: u64,
    waited: Option<Duration>,
    ran: Option<Duration>,
}

impl Bar {
    fn new(timeline: &Timeline, at: Timestamp, point: &Point) -> Self {
        let (failed, died) = (point.activity.failed(), point.activity.died);
        let done = point.activity.ended(OutcomeName::Success);
        let (waited, ran) = (wait_of(point, 0.95), run_of(point, 0.95));
        Self {
            at,
            step: timeline.step_of(at) as u64,
            done,
            failed: failed.saturating_sub(died),
            died,
            waited,
            ran,
        }
    }

    fn total(self) -> u64 {
        self.done + self.failed + self.died
    }
}

fn wait_of(point: &Point, fraction: f64) -> Option<Duration> {
    point.activity.waits.quantile(fraction, &WAIT_BOUNDS)
}

fn run_of(point: &Point, fraction: f64) -> Option<Duration> {
    point.activity.runs.quantile(fraction, &RUN_BOUNDS)
}

/// How long jobs waited: half of them, and 95 of 100, step by step.
pub(crate) fn waits(timeline: &Timeline, now: Timestamp) -> Markup {
    durations(timeline, now, wait_of, "waiting time: half of the attempts, and 95 of 100")
}

/// How long attempts ran, as [`waits`].
pub(crate) fn runs(timeline: &Timeline, now: Timestamp) -> Markup {
    durations(timeline, now, run_of, "run time: half of the attempts, and 95 of 100")
}

fn durations(
    timeline: &Timeline,
    now: Timestamp,
    of: fn(&Point, f64) -> Option<Duration>,
    label: &str,
) -> Markup {
    let steps = timeline.step_of(now) + 1;
    let width = steps.div_ceil(MAX_VALUES);
    let values = |fraction: f64| {
        let mut values: Vec<Option<u64>> = vec![None; steps.div_ceil(width)];
        for (at, point) in timeline.points() {
            let millis = of(point, fraction).map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
            if let Some(value) = values.get_mut(timeline.step_of(at) / width) {
                *value = (*value).max(millis);
            }
        }
        values
    };
    sparkline::lines(&[("p95", values(0.95)), ("p50", values(0.5))], label)
}

pub(crate) fn ended(timeline: &Timeline, now: Timestamp) -> Markup {
    let bars: Vec<Bar> = timeline.points().map(|(at, point)| Bar::new(timeline, at, point)).collect();
    let bars: Vec<Bar> = bars.into_iter().filter(|bar| bar.total() > 0).collect();
    let steps = timeline.step_of(now) as u64 + 1;
    let most = bars.iter().map(|bar| bar.total()).max().unwrap_or(0);
    let step = format_span(timeline.step());
    let first = start_of_minute(timeline.first_minute());
    html! {
        figure .chart {
            figcaption {
                "attempts ended per " (step)
                span .key { span .k-done {} " succeeded " span .k-failed {} " failed " span .k-dead {} " died" }
                @if most > 0 { span .most { "most: " (grouped(most)) } }
            }
            @if bars.is_empty() {
                p .empty { "No attempt has ended in this time." }
            } @else {
                svg viewBox={ "0 0 " (steps * STEP) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                    path .done d=(path(&bars, steps, most, |_| 0, |bar| bar.done)) {}
                    path .failed d=(path(&bars, steps, most, |bar| bar.done, |bar| bar.failed)) {}
                    path .dead d=(path(&bars, steps, most, |bar| bar.done + bar.failed, |bar| bar.died)) {}
                }
                p .axis {
                    (time::clock(now, first))
                    span { "now" }
                }
                (table(&bars, now))
            }
        }
    }
}

/// The same numbers, for readers who cannot see the drawing.
fn table(bars: &[Bar], now: Timestamp) -> Markup {
    html! {
        details .numbers {
            summary { "the numbers" }
            table {
                thead { tr { th scope="col" { "time" } th scope="col" { "succeeded" } th scope="col" { "failed" } th scope="col" { "died" } th scope="col" { "p95 wait" } th scope="col" { "p95 run" } } }
                tbody {
                    @for bar in bars.iter().rev() {
                        tr { th scope="row" { (time::clock(now, bar.at)) } td { (bar.done) } td { (bar.failed) } td { (bar.died) } td { (time::span_or_dash(bar.waited)) } td { (time::span_or_dash(bar.ran)) } }
                    }
                }
            }
        }
    }
}

/// One colour of all bars; a part that is not empty is never too flat to be seen.
fn path(bars: &[Bar], steps: u64, most: u64, below: fn(Bar) -> u64, part: fn(Bar) -> u64) -> String {
    let width = if steps > MAX_SPACED { STEP } else { STEP - 2 };
    let scaled = |count: u64| count * HEIGHT / most.max(1);
    let mut path = String::new();
    for bar in bars.iter().copied().filter(|bar| part(*bar) > 0) {
        let height = scaled(part(bar)).max(HEIGHT / 50);
        let top = HEIGHT.saturating_sub(scaled(below(bar)) + height);
        let _ = write!(path, "M{} {top}h{width}v{height}h-{width}z", bar.step * STEP);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::metrics::activity::EndedAttempt;

    #[test]
    fn each_outcome_is_drawn_and_in_the_table() {
        let now: Timestamp = "2026-11-16T15:44:34Z".parse().expect("a time");
        let mut timeline = Timeline::new(Duration::from_secs(3_600), now);
        let mut point = Point::default();
        for (outcome, died) in
            [(OutcomeName::Success, false), (OutcomeName::Failure, false), (OutcomeName::Failure, true)]
        {
            let duration = Duration::from_secs(1);
            point.activity.record_end(&EndedAttempt { outcome, duration, cpu: None, died });
        }
        timeline.add_activity(now.as_millis() / 60_000, &point.activity);
        let drawn = ended(&timeline, now).into_string();
        assert!(drawn.contains("<td>1</td><td>1</td><td>1</td><td>–</td>"), "{drawn}");
        assert_eq!(drawn.matches("d=\"M").count(), 3, "{drawn}");
        let empty = ended(&Timeline::new(Duration::from_secs(60), now), now).into_string();
        assert!(empty.contains("No attempt has ended"), "{empty}");
    }
}
