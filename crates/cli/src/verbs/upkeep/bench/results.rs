//! The results of a benchmark, for programs and for people.

use std::time::Duration;

use serde::Serialize;

use super::bare::Rate;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::grouped;

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Unit {
        PerSecond = "per_second",
        Milliseconds = "milliseconds",
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) store: &'static str,
    pub(super) cores: u32,
    /// How long all measurements took.
    pub(super) seconds: f64,
    pub(super) results: Vec<Figure>,
}

/// A result beside the limit of the machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    name: String,
    unit: Unit,
    value: f64,
    limit: f64,
    /// What was measured as the limit.
    limit_of: &'static str,
    /// How much of the limit is reached: 1 is all of it.
    share: f64,
}

impl Figure {
    pub(super) fn rate(name: &str, rate: Rate, limit: Rate, limit_of: &'static str) -> Self {
        let (value, limit) = (rate.per_second(), limit.per_second());
        Self { name: name.to_owned(), unit: Unit::PerSecond, value, limit, limit_of, share: value / limit }
    }

    pub(super) fn time(name: &str, time: Duration, limit: Duration, limit_of: &'static str) -> Self {
        let [value, limit] = [time, limit].map(|time| (time.as_secs_f64() * 1000.0).max(f64::EPSILON));
        Self { name: name.to_owned(), unit: Unit::Milliseconds, value, limit, limit_of, share: limit / value }
    }

    fn shown(&self, value: f64) -> String {
        match self.unit {
            Unit::PerSecond => format!("{}/s", grouped(whole(value))),
            Unit::Milliseconds => format!("{value:.1} ms"),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive and far below 2^63"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

pub(super) fn show(context: &Context, report: &Report) -> Result<(), Failure> {
    let mut table = Table::new(&["MEASUREMENT", "QUEUECTL", "LIMIT", "SHARE", "", "LIMIT IS TO"])
        .with_numbers(&["QUEUECTL", "LIMIT", "SHARE"])
        .with_optional_columns(&["LIMIT IS TO"]);
    for figure in &report.results {
        table.row(vec![
            Cell::from(figure.name.as_str()),
            figure.shown(figure.value).into(),
            figure.shown(figure.limit).into(),
            format!("{:.0} %", figure.share * 100.0).into(),
            bar(figure.share).into(),
            figure.limit_of.into(),
        ]);
    }
    context.print(report, |out| {
        table.write(out, context.width())?;
        writeln!(out, "\n{} store, {} cores, measured in {:.0} s", report.store, report.cores, report.seconds)
    })
}

/// A bar for a share of the limit.
fn bar(share: f64) -> String {
    const CELLS: u16 = 20;
    let filled = (share.clamp(0.0, 1.0) * f64::from(CELLS)).round();
    (0..CELLS).map(|cell| if f64::from(cell) < filled { '█' } else { '░' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(count: u64) -> Rate {
        Rate { count, took: Duration::from_secs(2) }
    }

    #[test]
    fn a_share_of_one_is_the_limit_for_rates_and_for_times() {
        let figure = Figure::rate("x", rate(900), rate(1_000), "y");
        assert_eq!(
            (figure.shown(figure.value), figure.shown(figure.limit)),
            ("450/s".into(), "500/s".into())
        );
        assert_eq!(bar(figure.share), "██████████████████░░", "nine of ten");
        assert_eq!(figure.shown(12_345.6), "12,346/s");
        let figure = Figure::time("x", Duration::from_millis(5), Duration::from_millis(2), "y");
        assert_eq!(figure.shown(figure.value), "5.0 ms");
        assert_eq!(bar(figure.share), "████████░░░░░░░░░░░░", "two of five");
    }

    #[test]
    fn a_bar_is_never_longer_than_its_room() {
        assert_eq!(bar(0.5), "██████████░░░░░░░░░░");
        for share in [-1.0, 0.0, 1.0, 7.0, f64::INFINITY] {
            assert_eq!(bar(share).chars().count(), 20, "{share}");
        }
    }
}
