//! A text over the screen, broken into rows at the width of its box.

use ratatui::layout::Size;

use super::{Mode, State};
use crate::layout::text_box;
use crate::terminal::Key;
use domain::text::hostile::printable;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// The first row that is shown.
    pub(crate) top: usize,
}

impl Text {
    /// All rows on a screen of this size.
    pub(crate) fn rows(&self, size: Size) -> Vec<String> {
        let width = usize::from(text_box(size).width);
        self.lines.iter().flat_map(|line| wrap(line, width)).collect()
    }
}

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other key means the same")]
    pub(super) fn text_key(&mut self, mut text: Text, key: Key) {
        let page = usize::from(text_box(self.size).height).max(1);
        let last = text.rows(self.size).len().saturating_sub(page);
        text.top = match key {
            Key::Char('j') | Key::Down => text.top + 1,
            Key::Char('k') | Key::Up => text.top.saturating_sub(1),
            Key::Ctrl('d') | Key::PageDown | Key::Char(' ') => text.top + page,
            Key::Ctrl('u') | Key::PageUp => text.top.saturating_sub(page),
            Key::Char('g') | Key::Home => 0,
            Key::Char('G') | Key::End => last,
            // Every other key closes it.
            _ => return,
        }
        .min(last);
        self.mode = Mode::Text(text);
    }
}

/// Broken at the width; a table stays aligned as far as it fits.
pub(super) fn wrap(line: &str, width: usize) -> Vec<String> {
    let shown = printable(&line.replace('\t', "    ")).into_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_as_many_rows_as_its_lines_need() {
        let text = Text { title: String::new(), lines: vec!["x".repeat(70), String::new()], top: 0 };
        assert_eq!(text.rows(Size::new(40, 10)).len(), 4);
        assert_eq!(text.rows(Size::new(80, 24)).len(), 2);
    }
}
