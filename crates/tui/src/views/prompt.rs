//! The line that the user types. Its end is always in view, and an error stands above it.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::canvas::{Canvas, columns, cut, inset, tail};
use crate::state::{Prompt, PromptKind, State};
use crate::theme::{Role, Theme};
use domain::text::hostile::printable;

pub(crate) fn draw(state: &State, prompt: &Prompt, footer: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let place = inset(footer, 1);
    // The mark, and the cursor behind the text.
    let room = usize::from(place.width.saturating_sub(3));
    let typed = format!("{}{}", prompt.mark(), tail(&printable(&prompt.text), room));
    let taken = canvas.text(place, 0, &typed, Style::new());
    canvas.text(inset(place, taken), 0, " ", Theme::chosen());
    let beside = inset(place, taken + 3);
    let error = state.note.as_ref().filter(|note| note.is_error).map(|note| format!("! {}", note.text));
    let candidates = prompt.candidates.join("  ");
    if let Some(error) = error {
        above(canvas, footer, &error, theme.style(Role::Error));
    } else if columns(&candidates) > beside.width {
        above(canvas, footer, &candidates, theme.style(Role::Quiet));
    } else {
        let hint = if candidates.is_empty() { hint(prompt.kind) } else { &candidates };
        canvas.text(beside, 0, &cut(hint, beside.width.into()), theme.style(Role::Quiet));
    }
}

/// A text on the row above the footer, instead of what stands there.
fn above(canvas: &mut Canvas<'_>, footer: Rect, text: &str, style: Style) {
    let row = Rect { y: footer.y.saturating_sub(1), height: 1, ..footer };
    canvas.clear(row);
    let place = inset(row, 1);
    canvas.text(place, 0, &cut(&printable(text), place.width.saturating_sub(1).into()), style);
}

fn hint(kind: PromptKind) -> &'static str {
    match kind {
        PromptKind::Filter => "state:dead queue:mail like:\"smtp*\"  Tab completes",
        PromptKind::Find => "a text in the output",
        PromptKind::Line => "a queuectl command line, as in `retry 12`  Tab completes",
    }
}
