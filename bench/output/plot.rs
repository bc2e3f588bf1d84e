//! Plots as SVG that look the same on light and dark pages: line charts and bar charts. This module does not depend on
//! the benchmarks.

#[path = "plot/bars.rs"]
mod bars;
#[path = "plot/frame.rs"]
mod frame;
#[path = "plot/lines.rs"]
mod lines;
#[path = "plot/scale.rs"]
mod scale;
#[path = "plot/svg.rs"]
mod svg;

pub(crate) use bars::{BarChart, Mark};
pub(crate) use lines::{LineChart, Series};
pub(crate) use scale::{Axis, Kind};
