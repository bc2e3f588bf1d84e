//! Maps values to positions along an axis, and chooses its ticks.

use super::super::figure::grouped;

/// The approximate number of ticks; there may be a few less.
const TICKS: f64 = 7.0;
/// Tolerance for rounding to a tick.
const TICK_TOLERANCE: f64 = 1e-9;

/// The label of an axis, and how values map to it.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// From zero.
    Linear,
    /// From zero to this value; larger values are drawn at the edge.
    LinearTo(f64),
    /// Logarithmic, with ticks at exactly these values.
    Marked(Vec<f64>),
}

impl Axis {
    pub(crate) fn new(label: &str, kind: Kind) -> Self {
        Self { label: label.to_owned(), kind }
    }

    /// Wide enough for all of these values.
    pub(super) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        match &self.kind {
            Kind::Linear => Scale::linear(values.filter(|value| value.is_finite()).fold(0.0, f64::max)),
            Kind::LinearTo(high) => Scale::linear(*high),
            Kind::Marked(marks) => Scale::marked(marks),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    fn linear(high: f64) -> Self {
        let high = if high > 0.0 { high } else { 1.0 };
        let step = step_of(high / TICKS);
        let ticks = steps(step, (high / step - TICK_TOLERANCE).ceil());
        Self { low: 0.0, high: ticks.last().copied().unwrap_or(high), is_logarithmic: false, ticks }
    }

    fn marked(marks: &[f64]) -> Self {
        let low = marks.iter().copied().fold(f64::INFINITY, f64::min);
        let high = marks.iter().copied().fold(0.0, f64::max);
        Self { low, high, is_logarithmic: true, ticks: marks.to_vec() }
    }

    /// The position of a value: 0 at the beginning of the axis, 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let place = if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place } else { 0.0 }
    }

    /// The ticks and their labels.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|tick| (*tick, figure(*tick)))
    }
}

/// 1, 2 or 5 times a power of ten, and not less than this.
fn step_of(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(power * 10.0)
}

/// The multiples of `step` from zero to `count` steps.
fn steps(step: f64, count: f64) -> Vec<f64> {
    let numbers = std::iter::successors(Some(0.0), |number| Some(number + 1.0));
    numbers.take_while(|number| *number <= count).map(|number| number * step).collect()
}

/// With as few digits after the point as possible, and at most three.
fn figure(value: f64) -> String {
    let digits = (0..3).find(|digits| {
        let scaled = value * 10_f64.powi(*digits);
        (scaled - scaled.round()).abs() < TICK_TOLERANCE * scaled.abs().max(1.0)
    });
    grouped(value, digits.map_or(3, i32::unsigned_abs) as usize)
}
