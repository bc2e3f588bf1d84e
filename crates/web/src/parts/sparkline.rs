//! Small drawings without axes, for a row of a table or a line of text.

use std::fmt::Write;

use maud::{Markup, html};

/// The height, in units of the drawing, which is stretched to its place.
const HEIGHT: u64 = 20;
/// A bar that is not empty is never lower.
const MIN_HEIGHT: u64 = 2;
/// Fewer values show no course.
const MIN_VALUES: usize = 3;
/// The width of a step.
const STEP: usize = 4;

/// Bars from old to new. `class` colours them; `about` says what they count, also to a reader who cannot see the drawing.
pub(crate) fn bars(counts: &[u64], class: &str, about: &str) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let width = counts.len() * STEP;
    html! {
        svg class={ "spark " (class) } viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(about) {
            title { (about) }
            path .ground d={ "M0 " (HEIGHT) "h" (width) } {}
            path d=(bar_path(counts, most)) {}
        }
    }
}

fn bar_path(counts: &[u64], most: u64) -> String {
    let mut path = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (count * HEIGHT / most).max(MIN_HEIGHT);
        let _ = write!(path, "M{} {HEIGHT}v-{height}h3v{height}z", at * STEP);
    }
    path
}

/// Lines on one scale, whose steps may lack a value. A few values make no line, and nothing is drawn.
pub(crate) fn lines(all: &[(&str, Vec<Option<u64>>)], label: &str) -> Markup {
    if all.iter().all(|(_, values)| values.iter().flatten().count() < MIN_VALUES) {
        return html! {};
    }
    let most = all.iter().flat_map(|(_, values)| values).flatten().copied().max().unwrap_or(0).max(1);
    let steps = all.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(2);
    html! {
        svg .spark.wide viewBox={ "0 0 " ((steps - 1) * STEP) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            @for (class, values) in all { path class={ "line " (class) } d=(line(values, most)) {} }
        }
    }
}

/// A value alone is a short dash, so that it can be seen.
fn line(values: &[Option<u64>], most: u64) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let (x, y) = (at * STEP, HEIGHT - value * (HEIGHT - 1) / most);
        let _ = if is_drawing { write!(path, "L{x} {y}") } else { write!(path, "M{x} {y}h1") };
        is_drawing = true;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_bar_is_full_and_the_smallest_can_be_seen() {
        assert_eq!(bar_path(&[0, 1_000, 1], 1_000), "M4 20v-20h3v20zM8 20v-2h3v2z");
        let drawn = bars(&[0, 0], "dead", "no deaths").into_string();
        assert!(drawn.contains("aria-label=\"no deaths\"") && drawn.contains("d=\"\""), "{drawn}");
    }

    #[test]
    fn a_missing_value_is_a_gap() {
        assert_eq!(line(&[Some(0), Some(10), None, Some(5)], 10), "M0 20h1L4 1M12 11h1");
        assert_eq!(lines(&[("p95", vec![Some(1), None, Some(2)])], "waits").into_string(), "");
    }
}
