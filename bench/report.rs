//! The table that a run prints, line by line as it is measured.

use crate::sample::Sample;

/// What a number counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Ratio,
    JobsPerSecond,
    Milliseconds,
    Megabytes,
    Bytes,
    Percent,
    Count,
}

/// What a number has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Printed to be looked at.
    None,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    missed: Vec<String>,
}

impl Report {
    pub(crate) fn section(title: &str) {
        println!("\n{title}");
    }

    pub(crate) fn line(&mut self, what: &str, sample: &Sample, unit: Unit, bar: Bar) {
        let value = unit.show(sample.median());
        let spread = if sample.is_single() {
            String::new()
        } else {
            format!("{} – {}", unit.show(sample.quantile(0.1)), unit.show(sample.quantile(0.9)))
        };
        let verdict = bar.judge(sample.median());
        println!("  {what:<58} {value:>12}  {spread:>23}  {:>11}  {verdict}", bar.show(unit));
        if verdict == MISSED {
            self.missed.push(what.to_owned());
        }
    }

    /// Says at the end how it went: whether every bar was reached.
    pub(crate) fn conclude(&self) -> bool {
        if self.missed.is_empty() {
            println!("\nEvery bar was reached.");
        } else {
            println!("\nMissed: {}.", self.missed.join("; "));
        }
        self.missed.is_empty()
    }
}

const MISSED: &str = "MISSED";

impl Bar {
    fn judge(self, value: f64) -> &'static str {
        let reached = match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::None => return "",
        };
        if reached { "ok" } else { MISSED }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Self::AtMost(limit) => format!("≤ {}", unit.show(limit)),
            Self::AtLeast(limit) => format!("≥ {}", unit.show(limit)),
            Self::None => String::new(),
        }
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}"),
            Self::JobsPerSecond => format!("{value:.0}/s"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Bytes => format!("{value:.0} B"),
            Self::Percent => format!("{value:.3} %"),
            Self::Count => format!("{value:.0}"),
        }
    }
}
