//! The few SVG elements that a chart needs.

use std::fmt::Write;

const FONT: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";

/// A point, in pixels from the upper left corner.
pub(super) type Point = (f64, f64);

/// Where a text is placed relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) is_dashed: bool,
}

/// An SVG document under construction.
#[derive(Debug)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    /// Draws a white background, because the page may be dark.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"{FONT}\" font-size=\"12\">\n\
             <title>{}</title>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n",
            escape(title)
        );
        Self { text }
    }

    pub(super) fn line(&mut self, points: &[Point], stroke: Stroke) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if stroke.is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.element(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dashes}/>",
            points.join(" "),
            stroke.colour,
            stroke.width
        ));
    }

    pub(super) fn dot(&mut self, (x, y): Point, colour: &str) {
        self.element(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
    }

    pub(super) fn rectangle(&mut self, (x, y): Point, (width, height): Point, colour: &str) {
        self.element(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    pub(super) fn label(&mut self, (x, y): Point, anchor: Anchor, text: &str) {
        let anchor = anchor.name();
        self.element(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#222222\">{}</text>",
            escape(text)
        ));
    }

    pub(super) fn heading(&mut self, (x, y): Point, text: &str) {
        self.element(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"15\" font-weight=\"600\" fill=\"#111111\">{}</text>",
            escape(text)
        ));
    }

    /// A text that reads upwards, centred on the point.
    pub(super) fn upright(&mut self, (x, y): Point, text: &str) {
        self.element(&format!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#222222\">{}</text>",
            escape(text)
        ));
    }

    pub(super) fn finish(self) -> String {
        self.text + "</svg>\n"
    }

    fn element(&mut self, element: &str) {
        writeln!(self.text, "{element}").expect("writing to a string does not fail");
    }
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
