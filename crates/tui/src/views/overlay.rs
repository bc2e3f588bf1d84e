//! What lies over the screen: a question, or a text.

use ratatui::layout::Rect;

use super::canvas::{Canvas, inset};
use crate::actions::word;
use crate::state::{Ask, Confirm, Text};
use crate::theme::{Role, Theme};
use domain::text::counts::grouped;

pub(crate) fn confirm(confirm: &Confirm, area: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    match &confirm.0 {
        Ask::Simple { line, .. } => {
            let place = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            canvas.clear(place);
            canvas.text(
                inset(place, 1),
                0,
                &format!("{line} y/n"),
                theme.style(Role::Warning).patch(Theme::title()),
            );
        }
        Ask::Matching { verb, filter, count, is_exact, by_state, typed } => {
            let states: Vec<String> = by_state
                .iter()
                .map(|(state, count)| format!("{} {}", state.name(), grouped(*count)))
                .collect();
            let at_least = if *is_exact { "" } else { "at least " };
            let which = if filter.is_empty() { "all jobs" } else { filter.text() };
            let command = filter.flags().filter(|flags| !flags.is_empty());
            let mut lines = vec![
                format!("{} {at_least}{} jobs? {}", word(*verb), grouped(*count), states.join(", ")),
                format!("filter: {which}"),
            ];
            lines.extend(command.map(|flags| format!("the same: queuectl {} {flags}", word(*verb))));
            lines.push(format!("type {count} and Enter, or Esc: {typed}_"));
            draw_box(canvas, area, "confirm", &lines);
        }
    }
}

pub(crate) fn text(text: &Text, area: Rect, canvas: &mut Canvas<'_>) {
    let rows = usize::from(area.height.saturating_sub(6)).max(1);
    let last = (text.top + rows).min(text.lines.len());
    draw_box(canvas, area, &text.title, &text.lines[text.top.min(last)..last]);
}

/// A box in the middle with these lines.
pub(crate) fn draw_box(canvas: &mut Canvas<'_>, area: Rect, title: &str, lines: &[String]) {
    let theme = canvas.theme;
    let width = area.width.saturating_sub(4).min(110);
    let wrapped: Vec<String> = lines.iter().flat_map(|line| wrap(line, usize::from(width) - 4)).collect();
    let height =
        u16::try_from(wrapped.len()).unwrap_or(u16::MAX).saturating_add(2).min(area.height.saturating_sub(2));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    canvas.clear(place);
    let side = theme.pick("│", "|");
    for row in 1..height.saturating_sub(1) {
        canvas.text(place, row, side, theme.style(Role::Quiet));
        canvas.right(place, row, side, theme.style(Role::Quiet));
    }
    canvas.rule(Rect { height: 1, ..place }, title, "Esc closes");
    canvas.rule(Rect { y: place.bottom() - 1, height: 1, ..place }, "", "");
    let body = Rect { width: width - 4, height: height.saturating_sub(1), ..inset(place, 2) };
    for (line, row) in wrapped.iter().zip(1..) {
        canvas.text(body, row, line, ratatui::style::Style::new());
    }
}

/// Broken at the width; a table stays aligned as far as it fits.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let shown = domain::text::hostile::printable(&line.replace('\t', "    ")).into_owned();
    let characters: Vec<char> = shown.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    let mut rows: Vec<String> = Vec::new();
    let mut rest = &characters[..];
    while rest.len() > width {
        let space =
            rest[..width].iter().rposition(|character| *character == ' ').filter(|at| *at > width / 2);
        let at = space.map_or(width, |at| at + 1);
        rows.push(rest[..at].iter().collect());
        rest = &rest[at..];
    }
    rows.push(rest.iter().collect());
    rows
}
