//! Characters that could control a terminal or deceive a reader, and their escaped form.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Control characters, invisible characters, and those that change the direction of text.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text that cannot control a terminal: hostile characters are written as escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _ = Escaping(&mut shown).write_str(text);
    Cow::Owned(shown)
}

/// As [`printable`], but keeps newlines and tabs, for text with several lines and columns.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|character| is_hostile(character) && !is_layout(character)) {
        return Cow::Borrowed(text);
    }
    let parts = text.split_inclusive(is_layout).map(|part| {
        let (plain, layout) = part.split_at(part.trim_end_matches(is_layout).len());
        printable(plain).into_owned() + layout
    });
    Cow::Owned(parts.collect())
}

fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

/// Forwards text, with hostile characters as escapes.
#[derive(Debug)]
pub struct Escaping<W>(pub W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, hostile)) = rest.char_indices().find(|(_, character)| is_hostile(*character)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", hostile.escape_default())?;
            rest = &rest[at + hostile.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_characters_are_escaped() {
        assert_eq!(printable("plain ä 漢"), "plain ä 漢");
        assert_eq!(printable("a\u{1b}[31m\nb"), "a\\u{1b}[31m\\nb");
        assert_eq!(printable("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(printable("\u{feff}\0ä\u{85}"), "\\u{feff}\\u{0}ä\\u{85}");
    }

    #[test]
    fn hostile_characters_are_escaped_while_writing() {
        let mut shown = String::new();
        let (text, number) = ("b\u{200b}", 1);
        write!(Escaping(&mut shown), "a\r: {text}, {number}").expect("writing to a string cannot fail");
        assert_eq!(shown, "a\\r: b\\u{200b}, 1");
    }

    #[test]
    fn newlines_and_tabs_are_not_escaped() {
        assert_eq!(printable_lines("a\tb\nc\r\u{1b}[0m"), "a\tb\nc\\r\\u{1b}[0m");
    }
}
