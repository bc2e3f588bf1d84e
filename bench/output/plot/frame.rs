//! The common parts of every chart: a heading, two axes, and a legend.

use super::scale::{Axis, Scale};
use super::svg::{Anchor, Canvas, Point, Stroke};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 362.0;
const LEGEND_LINE: f64 = 20.0;
const LEGEND_KEY: f64 = 22.0;
const GRID: Stroke = Stroke { colour: "#e2e2e2", width: 1.0, is_dashed: false };
const EDGE: Stroke = Stroke { colour: "#555555", width: 1.0, is_dashed: false };
/// Colours that readers with red-green colour blindness can tell apart.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];

/// The colour of the series at this position.
pub(super) fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// The area in which values are drawn.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) canvas: Canvas,
    upwards: Scale,
    keys: u32,
}

impl Frame {
    /// With its vertical axis, and a grid to read values off.
    pub(super) fn new(title: &str, axis: &Axis, upwards: Scale) -> Self {
        let mut canvas = Canvas::new(WIDTH, HEIGHT, title);
        canvas.heading((LEFT, 26.0), title);
        canvas.upright((18.0, f64::midpoint(TOP, BOTTOM)), &axis.label);
        for (value, text) in upwards.ticks() {
            let y = height(&upwards, value);
            canvas.line(&[(LEFT, y), (RIGHT, y)], GRID);
            canvas.label((LEFT - 8.0, y + 4.0), Anchor::End, &text);
        }
        Self { canvas, upwards, keys: 0 }
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        height(&self.upwards, value)
    }

    /// The x coordinate for a fraction of the width, from 0 to 1.
    pub(super) fn x(part: f64) -> f64 {
        LEFT + part * (RIGHT - LEFT)
    }

    /// A labelled tick on the horizontal axis.
    pub(super) fn tick(&mut self, part: f64, text: &str) {
        let x = Self::x(part);
        self.canvas.line(&[(x, BOTTOM), (x, BOTTOM + 5.0)], EDGE);
        self.canvas.label((x, BOTTOM + 20.0), Anchor::Middle, text);
    }

    pub(super) fn label_horizontal_axis(&mut self, label: &str) {
        self.canvas.label((f64::midpoint(LEFT, RIGHT), BOTTOM + 44.0), Anchor::Middle, label);
    }

    pub(super) fn bar(&mut self, (x, width): Point, value: f64, colour: &str) {
        let top = self.y(value);
        self.canvas.rectangle((x, top), (width, BOTTOM - top), colour);
    }

    pub(super) fn legend_line(&mut self, name: &str, stroke: Stroke) {
        let (x, y) = self.next_key();
        self.canvas.line(&[(x, y), (x + LEGEND_KEY, y)], stroke);
        self.canvas.label((x + LEGEND_KEY + 8.0, y + 4.0), Anchor::Start, name);
    }

    pub(super) fn legend_box(&mut self, name: &str, colour: &str) {
        let (x, y) = self.next_key();
        self.canvas.rectangle((x + 5.0, y - 6.0), (12.0, 12.0), colour);
        self.canvas.label((x + LEGEND_KEY + 8.0, y + 4.0), Anchor::Start, name);
    }

    /// The axes are drawn last, so that nothing covers them.
    pub(super) fn finish(mut self) -> String {
        self.canvas.line(&[(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], EDGE);
        self.canvas.finish()
    }

    fn next_key(&mut self) -> Point {
        let y = TOP + 8.0 + f64::from(self.keys) * LEGEND_LINE;
        self.keys += 1;
        (RIGHT + 16.0, y)
    }
}

fn height(upwards: &Scale, value: f64) -> f64 {
    BOTTOM - upwards.place(value) * (BOTTOM - TOP)
}
