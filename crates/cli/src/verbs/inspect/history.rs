//! `queuectl history`

use std::time::Duration;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::Table;
use crate::render::text::{grouped, rough};
use domain::job::outcome::OutcomeName;
use domain::metrics::histogram::{RUN_BOUNDS, WAIT_BOUNDS};
use domain::metrics::history::{Point, Timeline};
use domain::text::sparkline::sparkline;
use domain::values::name::QueueName;
use domain::values::span::parse_span;
use domain::values::timestamp::Timestamp;
use ops::metrics::history::{HistoryJson, history};

/// Show what happened over a time, step by step
///
/// Each line has the bars of one number over the time, its sum, its largest value, and its value in the last step, which is
/// not over. A gap means that no worker ran: nothing happened, and no worker counted the jobs.
///
/// Single minutes are kept for a day, ten minutes for a week, and hours for as long as the setting retain_metrics says. With
/// --json, each step is an object; there are at most 300.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl history
  queuectl history --range 7d --queue mail
  queuectl history --range 1h --json | jq '.points[-1].wait_p95_ms'")]
pub(crate) struct Args {
    /// How far back: 90m, 24h, 7d
    #[arg(long, value_name = "DURATION", default_value = "24h", allow_negative_numbers = true,
          value_parser = parse_span)]
    range: Duration,
    /// Only this queue
    #[arg(short = 'Q', long, value_name = "QUEUE", value_parser = |text: &str| text.parse::<QueueName>())]
    queue: Option<QueueName>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let timeline = history(store, args.range, args.queue.as_ref())?;
    let now = store.now()?;
    context.print(&HistoryJson::from(&timeline), |out| {
        writeln!(out, "The last {} in steps of {}", rough(args.range), rough(timeline.step()))?;
        writeln!(out)?;
        table(&timeline, now, cells(context.width())).write(out, context.width())
    })
}

/// What a line of the table shows.
struct Measure {
    name: &'static str,
    value: fn(&Point) -> Option<u64>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Steps are summed up.
    Count,
    /// The largest value of several steps counts.
    Jobs,
    /// The same, in milliseconds.
    Millis,
}

const MEASURES: [Measure; 11] = [
    Measure { name: "enqueued", value: |point| Some(point.enqueued), kind: Kind::Count },
    Measure { name: "started", value: |point| Some(point.activity.started), kind: Kind::Count },
    Measure {
        name: "completed",
        value: |point| Some(point.activity.ended(OutcomeName::Success)),
        kind: Kind::Count,
    },
    Measure { name: "failed", value: |point| Some(point.activity.failed()), kind: Kind::Count },
    Measure { name: "died", value: |point| Some(point.activity.died), kind: Kind::Count },
    Measure { name: "wait p50", value: |point| waited(point, 0.5), kind: Kind::Millis },
    Measure { name: "wait p95", value: |point| waited(point, 0.95), kind: Kind::Millis },
    Measure { name: "run p50", value: |point| ran(point, 0.5), kind: Kind::Millis },
    Measure { name: "run p95", value: |point| ran(point, 0.95), kind: Kind::Millis },
    Measure { name: "pending", value: |point| point.depth.map(|depth| depth.pending), kind: Kind::Jobs },
    Measure {
        name: "processing",
        value: |point| point.depth.map(|depth| depth.processing),
        kind: Kind::Jobs,
    },
];

fn waited(point: &Point, fraction: f64) -> Option<u64> {
    millis(point.activity.waits.quantile(fraction, &WAIT_BOUNDS))
}

fn ran(point: &Point, fraction: f64) -> Option<u64> {
    millis(point.activity.runs.quantile(fraction, &RUN_BOUNDS))
}

fn millis(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// The width of all columns but that of the bars.
const OTHER_COLUMNS: usize = 34;
const MAX_BARS: usize = 72;
const MIN_BARS: usize = 10;

/// How many bars fit.
fn cells(width: usize) -> usize {
    width.saturating_sub(OTHER_COLUMNS).clamp(MIN_BARS, MAX_BARS)
}

fn table(timeline: &Timeline, now: Timestamp, cells: usize) -> Table {
    let mut table = Table::new(&["", "HISTORY", "TOTAL", "MOST", "LAST"])
        .with_numbers(&["TOTAL", "MOST", "LAST"])
        .with_whole_columns(&["", "HISTORY"]);
    let steps = timeline.step_of(now) + 1;
    for measure in &MEASURES {
        let points: Vec<(usize, u64)> = timeline
            .points()
            .filter_map(|(at, point)| Some((timeline.step_of(at), (measure.value)(point)?)))
            .collect();
        let values = points.iter().map(|(_, value)| *value);
        let last = points.iter().find(|(step, _)| *step + 1 == steps).map(|(_, value)| *value);
        let show =
            |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| shown(measure.kind, value));
        let total = (measure.kind == Kind::Count).then(|| values.clone().sum());
        table.row(vec![
            measure.name.into(),
            sparkline(&bars(&points, steps, cells, measure.kind)).into(),
            total.map_or_else(String::new, grouped).into(),
            show(values.max()).into(),
            show(last).into(),
        ]);
    }
    table
}

fn shown(kind: Kind, value: u64) -> String {
    match kind {
        Kind::Count | Kind::Jobs => grouped(value),
        Kind::Millis => rough(Duration::from_millis(value)),
    }
}

/// The values of as many bars as fit: several steps share one.
fn bars(points: &[(usize, u64)], steps: usize, cells: usize, kind: Kind) -> Vec<Option<u64>> {
    let per_bar = steps.div_ceil(cells).max(1);
    let mut bars = vec![None; steps.div_ceil(per_bar)];
    for (step, value) in points {
        if let Some(bar) = bars.get_mut(step / per_bar) {
            let known: u64 = bar.unwrap_or(0);
            *bar = Some(match kind {
                Kind::Count => known.saturating_add(*value),
                Kind::Jobs | Kind::Millis => known.max(*value),
            });
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_steps_share_a_bar() {
        let points = [(0, 3), (1, 4), (5, 7)];
        assert_eq!(bars(&points, 6, 10, Kind::Count), [Some(3), Some(4), None, None, None, Some(7)]);
        assert_eq!(bars(&points, 6, 3, Kind::Count), [Some(7), None, Some(7)]);
        assert_eq!(bars(&points, 6, 3, Kind::Jobs), [Some(4), None, Some(7)]);
        assert_eq!(bars(&[], 0, 3, Kind::Jobs), []);
    }
}
