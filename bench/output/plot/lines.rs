//! A chart with a line for each series.

use super::frame::{Frame, colour};
use super::scale::Axis;
use super::svg::{Point, Stroke};

/// A series of more points is drawn without dots.
const MAX_DOTS: usize = 12;

#[derive(Clone, Debug)]
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) across: Axis,
    pub(crate) upwards: Axis,
    pub(crate) series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Marks a series that is a reference.
    pub(crate) is_dashed: bool,
}

impl Series {
    pub(crate) fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, is_dashed: false }
    }

    pub(crate) fn dashed(self) -> Self {
        Self { is_dashed: true, ..self }
    }
}

impl LineChart {
    pub(crate) fn svg(&self) -> String {
        let across = self.across.scale(self.points().map(|(x, _)| x));
        let upwards = self.upwards.scale(self.points().map(|(_, y)| y));
        let mut frame = Frame::new(&self.title, &self.upwards, upwards);
        for (value, text) in across.ticks() {
            frame.tick(across.place(value), &text);
        }
        frame.label_horizontal_axis(&self.across.label);
        for (at, series) in self.series.iter().enumerate() {
            let stroke = Stroke { colour: colour(at), width: 2.0, is_dashed: series.is_dashed };
            let place = |(x, y): &Point| (Frame::x(across.place(*x)), frame.y(*y));
            let points: Vec<Point> = series.points.iter().filter(is_finite).map(place).collect();
            frame.canvas.line(&points, stroke);
            if points.len() <= MAX_DOTS {
                for point in points {
                    frame.canvas.dot(point, stroke.colour);
                }
            }
            frame.legend_line(&series.name, stroke);
        }
        frame.finish()
    }

    fn points(&self) -> impl Iterator<Item = Point> {
        self.series.iter().flat_map(|series| series.points.iter().copied()).filter(is_finite)
    }
}

fn is_finite<P: std::borrow::Borrow<Point>>(point: &P) -> bool {
    let (x, y) = point.borrow();
    x.is_finite() && y.is_finite()
}
