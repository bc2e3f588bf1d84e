//! A chart with groups of bars, with one bar per series in each group.

use super::frame::{Frame, colour};
use super::scale::{Axis, Kind};
use super::svg::Stroke;

/// The fraction of a group's width that its bars leave free.
const GAP: f64 = 0.25;

#[derive(Clone, Debug)]
pub(crate) struct BarChart {
    pub(crate) title: String,
    /// The label of the vertical axis.
    pub(crate) upwards: String,
    /// The label below each group.
    pub(crate) groups: Vec<String>,
    /// The name of each series, and its value in each group.
    pub(crate) series: Vec<(String, Vec<f64>)>,
    pub(crate) mark: Option<Mark>,
}

/// A horizontal line across the chart.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) value: f64,
}

impl BarChart {
    pub(crate) fn svg(&self) -> String {
        let axis = Axis::new(&self.upwards, Kind::Linear);
        let values = self.series.iter().flat_map(|(_, values)| values.iter().copied());
        let upwards = axis.scale(values.chain(self.mark.iter().map(|mark| mark.value)));
        let mut frame = Frame::new(&self.title, &axis, upwards);
        let group_width = 1.0 / count(self.groups.len());
        let bar_width = group_width * (1.0 - GAP) / count(self.series.len());
        for (at, group) in self.groups.iter().enumerate() {
            frame.tick((number(at) + 0.5) * group_width, group);
        }
        for (at, (name, values)) in self.series.iter().enumerate() {
            for (group, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
                let begin = (number(group) + GAP / 2.0) * group_width + number(at) * bar_width;
                let width = Frame::x(bar_width) - Frame::x(0.0);
                frame.bar((Frame::x(begin), width - 1.0), *value, colour(at));
            }
            frame.legend_box(name, colour(at));
        }
        if let Some(mark) = &self.mark {
            let stroke = Stroke { colour: "#111111", width: 1.5, is_dashed: true };
            let y = frame.y(mark.value);
            frame.canvas.line(&[(Frame::x(0.0), y), (Frame::x(1.0), y)], stroke);
            frame.legend_line(&mark.name, stroke);
        }
        frame.finish()
    }
}

fn number(at: usize) -> f64 {
    f64::from(u32::try_from(at).expect("the number of bars fits into a u32"))
}

/// At least one, because it is a divisor.
fn count(length: usize) -> f64 {
    number(length.max(1))
}
