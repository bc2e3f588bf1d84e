//! Pictures of what was measured, as SVG that looks the same on light and dark pages. It draws two kinds of charts and
//! knows nothing of benchmarks.

mod bars;
mod frame;
mod lines;
mod scale;
mod svg;

pub(crate) use bars::{BarChart, Mark};
pub(crate) use lines::{LineChart, Series};
pub(crate) use scale::{Axis, Kind};
