//! Text on the screen. Everything that a user or a job may have written passes [`Canvas::text`], which shows what could
//! control a terminal as escapes.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::theme::{Role, Theme};
use domain::text::hostile::printable;

/// Signs within texts. Those with a meaning of their own are chosen by [`Theme::pick`].
const IN_ASCII: [(&str, &str); 4] = [("…", "~"), ("·", "-"), ("–", "-"), ("░", ".")];

pub(crate) struct Canvas<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    pub(crate) theme: Theme,
}

impl<'b> Canvas<'b> {
    pub(crate) fn new(buffer: &'b mut Buffer, area: Rect, theme: Theme) -> Self {
        Self { buffer, area, theme }
    }

    /// Writes into a row of a place, from its left edge; returns how many columns it took.
    pub(crate) fn text(&mut self, place: Rect, row: u16, text: &str, style: Style) -> u16 {
        self.line(place, row, &Line::from(Span::styled(printable(text).into_owned(), style)))
    }

    /// At the right edge.
    pub(crate) fn right(&mut self, place: Rect, row: u16, text: &str, style: Style) {
        let text = printable(text);
        let width = columns(&text).min(place.width);
        let place = Rect { x: place.right() - width, width, ..place };
        self.text(place, row, &text, style);
    }

    /// Several styles in one row. Its parts must be printable.
    pub(crate) fn line(&mut self, place: Rect, row: u16, line: &Line<'_>) -> u16 {
        let place = place.intersection(self.area);
        if row >= place.height || place.width == 0 {
            return 0;
        }
        let y = place.y + row;
        let (end, _) = self.buffer.set_line(place.x, y, line, place.width);
        if self.theme.is_ascii {
            self.write_in_ascii(place.x, end, y);
        }
        end - place.x
    }

    /// Replaces the signs of this program, of which data may have some as well.
    fn write_in_ascii(&mut self, from: u16, to: u16, y: u16) {
        for x in from..to {
            let Some(cell) = self.buffer.cell_mut((x, y)) else {
                return;
            };
            let replacement = IN_ASCII.iter().find(|(sign, _)| *sign == cell.symbol());
            if let Some((_, ascii)) = replacement {
                cell.set_symbol(ascii);
            }
        }
    }

    /// A horizontal line with a title, and a text at its right end.
    pub(crate) fn rule(&mut self, place: Rect, title: &str, right: &str) {
        let quiet = self.theme.style(Role::Quiet);
        let line = self.theme.pick("─", "-").repeat(place.width.into());
        self.text(place, 0, &line, quiet);
        if !title.is_empty() {
            let title = format!(" {} ", printable(title));
            let shown = cut(&title, usize::from(place.width.saturating_sub(2)));
            self.text(inset(place, 1), 0, &shown, Theme::title());
        }
        if !right.is_empty() && columns(title) + columns(right) + 6 < place.width {
            let place = Rect { width: place.width - 1, ..place };
            self.right(place, 0, &format!(" {right} "), quiet);
        }
    }

    /// Empties a place, for what lies over it.
    pub(crate) fn clear(&mut self, place: Rect) {
        let place = place.intersection(self.area);
        for y in place.top()..place.bottom() {
            for x in place.left()..place.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }

    /// Gives a row of a place a style.
    pub(crate) fn mark_row(&mut self, place: Rect, row: u16, style: Style) {
        let place = place.intersection(self.area);
        if row < place.height {
            self.buffer.set_style(Rect { y: place.y + row, height: 1, ..place }, style);
        }
    }
}

/// Without this many columns at the left edge.
pub(crate) fn inset(place: Rect, by: u16) -> Rect {
    let by = by.min(place.width);
    Rect { x: place.x + by, width: place.width - by, ..place }
}

pub(crate) fn columns(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// The end of a text that fits, with a sign that it begins before.
pub(crate) fn tail(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = 0;
    let begins = text.char_indices().rev().take_while(|(_, character)| {
        kept += character.width().unwrap_or(0);
        kept < width
    });
    let begin = begins.last().map_or(text.len(), |(at, _)| at);
    format!("…{}", &text[begin..])
}

/// The beginning of a text that fits, with a sign that it continues.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if kept.width() >= width {
            kept.pop();
            break;
        }
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_either_end() {
        for (text, width, beginning, end) in
            [("abcdef", 6, "abcdef", "abcdef"), ("abcdef", 4, "abc…", "…def"), ("äöü漢", 4, "äöü…", "…ü漢")]
        {
            assert_eq!((cut(text, width).as_str(), tail(text, width).as_str()), (beginning, end), "{text}");
        }
    }
}
