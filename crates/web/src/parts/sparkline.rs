//! Small drawings without axes, for a row of a table or a line of text.

use std::fmt::Write;

use maud::{Markup, html};

/// The height, in units of the drawing, which is stretched to its place.
const HEIGHT: u64 = 20;
/// The width of a step.
const STEP: usize = 4;

/// A bar for each count; `label` says in words what they are.
pub(crate) fn bars(counts: &[u64], label: &str) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let mut path = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (count * HEIGHT / most).max(1);
        let _ = write!(path, "M{} {HEIGHT}v-{height}h3v{height}z", at * STEP);
    }
    html! {
        svg .spark viewBox={ "0 0 " (counts.len() * STEP) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            path d=(path) {}
        }
    }
}

/// Lines on one scale, whose steps may lack a value.
pub(crate) fn lines(all: &[(&str, Vec<Option<u64>>)], label: &str) -> Markup {
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
    fn each_count_is_drawn_and_said() {
        let drawn = bars(&[0, 1, 1_000], "the last hours").into_string();
        assert!(drawn.contains("aria-label=\"the last hours\""), "{drawn}");
        assert_eq!(
            drawn.matches('v').count() - drawn.matches("viewBox").count() - drawn.matches("svg").count() * 2,
            4,
            "{drawn}"
        );
    }

    #[test]
    fn a_missing_value_is_a_gap() {
        assert_eq!(line(&[Some(0), Some(10), None, Some(5)], 10), "M0 20h1L4 1M12 11h1");
    }
}
