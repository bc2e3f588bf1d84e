//! The charts of what ended and of how long it took, drawn on the server, with a table of the same numbers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use maud::{Markup, html};

use super::number::{counted, grouped};
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
        let done = point.activity.ended(OutcomeName::Success);
        let (waited, ran) = (wait_of(point, 0.95), run_of(point, 0.95));
        Self {
            at,
            step: timeline.step_of(at) as u64,
            done,
            failed: point.activity.retries(),
            died: point.activity.died,
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

/// What is known of the times in which no worker ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks<'a> {
    /// When workers started.
    pub(crate) starts: &'a [Timestamp],
    /// Whether a step without a point means that nothing was recorded. It does not if the timeline is that of one queue:
    /// an idle queue has no points.
    pub(crate) shows_gaps: bool,
}

pub(crate) fn ended(timeline: &Timeline, now: Timestamp, marks: Marks<'_>) -> Markup {
    let bars: Vec<Bar> = timeline.points().map(|(at, point)| Bar::new(timeline, at, point)).collect();
    let bars: Vec<Bar> = bars.into_iter().filter(|bar| bar.total() > 0).collect();
    let steps = timeline.step_of(now) as u64 + 1;
    let most = bars.iter().map(|bar| bar.total()).max().unwrap_or(0);
    let step = format_span(timeline.step());
    let first = start_of_minute(timeline.first_minute());
    let gaps = if marks.shows_gaps { gaps(timeline, steps) } else { Vec::new() };
    let starts: BTreeSet<u64> = marks.starts.iter().map(|at| timeline.step_of(*at) as u64).collect();
    html! {
        figure .chart {
            figcaption {
                "attempts ended per " (step)
                span .key { span .k-done {} " succeeded " span .k-failed {} " failed " span .k-dead {} " died" }
                @if !gaps.is_empty() { span .key { span .k-gap {} " no worker ran" } }
                @if !starts.is_empty() { span .key { span .k-start {} " " (counted(marks.starts.len() as u64, "worker started", "workers started")) } }
                @if most > 0 { span .most { "most: " (grouped(most)) } }
            }
            @if bars.is_empty() {
                p .empty { "No attempt has ended in this time." }
            } @else {
                svg viewBox={ "0 0 " (steps * STEP) " " (HEIGHT) } preserveAspectRatio="none" aria-hidden="true" {
                    path .gap d=(spans(&gaps)) {}
                    path .done d=(path(&bars, steps, most, |_| 0, |bar| bar.done)) {}
                    path .failed d=(path(&bars, steps, most, |bar| bar.done, |bar| bar.failed)) {}
                    path .dead d=(path(&bars, steps, most, |bar| bar.done + bar.failed, |bar| bar.died)) {}
                    path .start d=(lines(&starts)) {}
                }
                p .axis {
                    (time::clock(now, first))
                    span { "now" }
                }
                (table(&bars, now, timeline, &gaps, marks.starts))
            }
        }
    }
}

/// The ranges of steps of which nothing is known: no worker ran.
fn gaps(timeline: &Timeline, steps: u64) -> Vec<Range<u64>> {
    let known = timeline.points().map(|(at, _)| timeline.step_of(at) as u64);
    let mut gaps = Vec::new();
    let mut next = 0;
    // The current step is not over.
    for step in known.chain([steps.saturating_sub(1)]) {
        if step > next {
            gaps.push(next..step);
        }
        next = next.max(step + 1);
    }
    gaps
}

/// Ranges of steps over the whole height.
fn spans(ranges: &[Range<u64>]) -> String {
    let mut path = String::new();
    for range in ranges {
        let (from, width) = (range.start * STEP, (range.end - range.start) * STEP);
        let _ = write!(path, "M{from} 0h{width}v{HEIGHT}h-{width}z");
    }
    path
}

/// A line at the beginning of each of these steps.
fn lines(steps: &BTreeSet<u64>) -> String {
    let mut path = String::new();
    for step in steps {
        let _ = write!(path, "M{} 0v{HEIGHT}", step * STEP);
    }
    path
}

/// At most so many starts and gaps are named; the newest are.
const MAX_NAMED: usize = 20;

/// The same numbers, for readers who cannot see the drawing.
fn table(
    bars: &[Bar],
    now: Timestamp,
    timeline: &Timeline,
    gaps: &[Range<u64>],
    starts: &[Timestamp],
) -> Markup {
    let begin = |step: u64| {
        let millis = u64::try_from(timeline.step().as_millis()).unwrap_or(u64::MAX).saturating_mul(step);
        start_of_minute(timeline.first_minute()).saturating_add(Duration::from_millis(millis))
    };
    html! {
        details .numbers {
            summary { "the numbers" }
            @if !gaps.is_empty() {
                p { "No worker ran: " @for gap in gaps.iter().rev().take(MAX_NAMED) { span .gap { (time::clock(now, begin(gap.start))) " – " (time::clock(now, begin(gap.end))) } " " } }
            }
            @if !starts.is_empty() {
                p { "Workers started: " @for at in starts.iter().rev().take(MAX_NAMED) { span .gap { (time::clock(now, *at)) } " " } }
            }
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
    use domain::metrics::activity::{Activity, EndedAttempt};

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
        let drawn = ended(&timeline, now, Marks::default()).into_string();
        assert!(drawn.contains("<td>1</td><td>1</td><td>1</td><td>–</td>"), "{drawn}");
        assert_eq!(drawn.matches("d=\"M").count(), 3, "{drawn}");
        let empty = ended(&Timeline::new(Duration::from_secs(60), now), now, Marks::default()).into_string();
        assert!(empty.contains("No attempt has ended"), "{empty}");
    }

    #[test]
    fn times_without_a_worker_are_gaps_and_starts_are_lines() {
        let now: Timestamp = "2026-11-16T15:44:34Z".parse().expect("a time");
        let mut timeline = Timeline::new(Duration::from_secs(10 * 60), now);
        let minute = now.as_millis() / 60_000;
        let mut activity = Activity::default();
        let duration = Duration::from_secs(1);
        activity.record_end(&EndedAttempt {
            outcome: OutcomeName::Success,
            duration,
            cpu: None,
            died: false,
        });
        // In the first three minutes, and again from the seventh on.
        for at in [9, 8, 7, 3, 2, 1] {
            timeline.add_activity(minute - at, &activity);
        }
        assert_eq!(
            gaps(&timeline, 10).as_slice(),
            std::slice::from_ref(&(3..6)),
            "the current minute is not over"
        );
        let starts =
            [Timestamp::from_millis((minute - 3) * 60_000), Timestamp::from_millis(minute * 60_000 - 1)];
        let marks = Marks { starts: &starts, shows_gaps: true };
        let drawn = ended(&timeline, now, marks).into_string();
        assert!(drawn.contains("class=\"gap\" d=\"M30 0h30v1000h-30z\""), "{drawn}");
        assert!(drawn.contains("class=\"start\" d=\"M60 0v1000M80 0v1000\""), "{drawn}");
        assert!(drawn.contains("no worker ran") && drawn.contains("2 workers started"), "{drawn}");
        let of_queue = ended(&timeline, now, Marks { shows_gaps: false, ..marks }).into_string();
        assert!(!of_queue.contains("no worker ran"), "an idle queue has no points either: {of_queue}");
    }
}
