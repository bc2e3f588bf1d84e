//! What lies over the screen: a question, or a text.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::{Canvas, inset};
use crate::actions::word;
use crate::layout::text_box;
use crate::state::{Ask, Confirm, Text};
use crate::theme::{Role, Theme};
use domain::text::counts::grouped;

pub(crate) fn confirm(confirm: &Confirm, area: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    match &confirm.0 {
        Ask::Simple { line, .. } => {
            let place = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            canvas.clear(place);
            canvas.text(inset(place, 1), 0, "?", theme.style(Role::Warning).patch(Theme::title()));
            canvas.text(inset(place, 3), 0, &format!("{line} y/n"), Theme::title());
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
            let text = Text { title: "confirm".to_owned(), lines, top: 0 };
            draw_box(canvas, area, &text.title, &text.rows(area.as_size()), "");
        }
    }
}

pub(crate) fn text(text: &Text, area: Rect, canvas: &mut Canvas<'_>) {
    let rows = text.rows(area.as_size());
    let fitting = usize::from(text_box(area.as_size()).height);
    let first = text.top.min(rows.len().saturating_sub(fitting));
    let last = (first + fitting).min(rows.len());
    let position = if rows.len() > fitting {
        format!("{}–{last} of {} · j k", first + 1, rows.len())
    } else {
        String::new()
    };
    draw_box(canvas, area, &text.title, &rows[first..last], &position);
}

/// A box in the middle with these rows, and a text at its lower edge.
fn draw_box(canvas: &mut Canvas<'_>, area: Rect, title: &str, rows: &[String], below: &str) {
    let theme = canvas.theme;
    let room = text_box(area.as_size());
    let (width, height) =
        (room.width + 4, u16::try_from(rows.len()).unwrap_or(u16::MAX).min(room.height).saturating_add(2));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    canvas.clear(place);
    let side = theme.pick("│", "|");
    for row in 1..height.saturating_sub(1) {
        canvas.text(place, row, side, theme.style(Role::Quiet));
        canvas.right(place, row, side, theme.style(Role::Quiet));
    }
    canvas.rule(Rect { height: 1, ..place }, title, "Esc closes");
    canvas.rule(Rect { y: place.bottom() - 1, height: 1, ..place }, "", below);
    let body = Rect { width: room.width, height: height.saturating_sub(1), ..inset(place, 2) };
    for (line, row) in rows.iter().zip(1..) {
        canvas.text(body, row, line, Style::new());
    }
}
