//! Pictures of what was measured, as SVG that looks the same on light and dark pages. It draws two kinds of charts and
//! knows nothing of benchmarks.

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
