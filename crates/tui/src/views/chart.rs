//! Bars over time.

use ratatui::layout::Rect;

use super::canvas::{Canvas, inset};
use crate::theme::Role;
use domain::metrics::history::{Point, Timeline};
use domain::text::sparkline::sparkline;
use domain::values::timestamp::Timestamp;

/// The characters of a bar in ASCII, by height.
const ASCII_BARS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values of the last `width` steps; `None` where nothing is known.
pub(crate) fn values(
    timeline: &Timeline,
    now: Timestamp,
    width: usize,
    value: impl Fn(&Point) -> Option<u64>,
) -> Vec<Option<u64>> {
    let last = timeline.step_of(now);
    let mut values = vec![None; last + 1];
    for (at, point) in timeline.points() {
        if let Some(place) = values.get_mut(timeline.step_of(at)) {
            *place = value(point);
        }
    }
    values.split_off(values.len().saturating_sub(width))
}

/// How many attempts ended in each of the last minutes.
pub(crate) fn rate_bars(timeline: &Timeline, now: Timestamp, width: usize, is_ascii: bool) -> String {
    let values = values(timeline, now, width, |point| Some(ended(point)));
    in_ascii(&sparkline(&values), is_ascii)
}

pub(crate) fn ended(point: &Point) -> u64 {
    point.activity.finished()
}

fn in_ascii(bars: &str, is_ascii: bool) -> String {
    if !is_ascii {
        return bars.to_owned();
    }
    let ascii = |bar: char| BARS.iter().position(|known| *known == bar).map_or(bar, |at| ASCII_BARS[at]);
    bars.chars().map(ascii).collect()
}

/// A chart of several rows, with its title and its largest value.
pub(crate) fn draw(
    canvas: &mut Canvas<'_>,
    place: Rect,
    title: &str,
    role: Role,
    values: &[Option<u64>],
    unit: impl Fn(u64) -> String,
) {
    let most = values.iter().flatten().max().copied().unwrap_or(0);
    canvas.rule(Rect { height: 1, ..place }, title, &format!("at most {}", unit(most)));
    let rows = place.height.saturating_sub(1);
    let steps = u64::from(rows) * 8;
    let style = canvas.theme.style(role);
    let is_ascii = canvas.theme.is_ascii;
    for row in 0..rows {
        let below = u64::from(rows - 1 - row) * 8;
        let bar = |value: &Option<u64>| {
            let height = value.map_or(0, |value| (value * steps).div_ceil(most.max(1)));
            match (height.saturating_sub(below).min(8), value) {
                (0, Some(_)) if row + 1 == rows => BARS[0],
                (0, _) => ' ',
                (eighths, _) => BARS[usize::try_from(eighths - 1).unwrap_or(7)],
            }
        };
        let line: String = values.iter().map(bar).collect();
        canvas.text(inset(place, 1), row + 1, &in_ascii(&line, is_ascii), style);
    }
}
