//! Text for people: broken into lines, with the colours of states.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

pub(crate) use domain::job::life::when::when;
use domain::job::life::{State, StateName};
pub(crate) use domain::text::counts::{grouped, jobs};
pub(crate) use domain::text::hostile::printable;
pub(crate) use domain::values::size::rough_size;
pub(crate) use domain::values::span::rough_span as rough;

/// Breaks text between words into lines of at most `width` columns. A command in backticks stays on one line if it fits
/// there, so that people can copy it.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in pieces(text, width) {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// The words of a text. Those within backticks are one piece, unless they are wider than a line.
fn pieces(text: &str, width: usize) -> Vec<&str> {
    let mut is_quoted = false;
    let ends_piece = |character: char| {
        is_quoted ^= character == '`';
        character == ' ' && !is_quoted
    };
    let mut pieces = Vec::new();
    for piece in text.split(ends_piece) {
        if piece.width() <= width {
            pieces.push(piece);
        } else {
            pieces.extend(piece.split(' '));
        }
    }
    pieces
}

/// A message that follows a label of `indent` columns, such as `hint: `, in lines that fit the terminal, the later ones
/// below the first.
pub(crate) fn wrap_after_label(message: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent);
    let lines: Vec<String> = message.lines().flat_map(|line| wrap(line, room)).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

/// `paused` for a paused job: `processing` beside it would take the room of a column.
pub(crate) fn state_text(state: &State) -> &'static str {
    if state.paused_at().is_some() { "paused" } else { state.name().name() }
}

/// Green is good, red needs attention, yellow will be retried.
pub(crate) fn state_style(state: StateName) -> Style {
    match state {
        StateName::Pending => Style::new(),
        StateName::Processing => AnsiColor::Cyan.on_default(),
        StateName::Completed => AnsiColor::Green.on_default(),
        StateName::Failed => AnsiColor::Yellow.on_default(),
        StateName::Dead => AnsiColor::Red.on_default().bold(),
        StateName::Cancelled => Style::new().dimmed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字 a", 4), ["漢字漢字", "a"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("all of it", usize::MAX), ["all of it"]);
    }

    #[test]
    fn a_command_in_backticks_stays_on_one_line_if_it_fits() {
        assert_eq!(wrap("run `a b c` or `d e`", 9), ["run", "`a b c`", "or `d e`"]);
        assert_eq!(wrap("(`a b`), then", 9), ["(`a b`),", "then"]);
        assert_eq!(wrap("run `a b c d e f`", 9), ["run `a b", "c d e f`"]);
        assert_eq!(wrap("one ` is not closed", 9), ["one ` is", "not", "closed"]);
        assert_eq!(wrap("it is `last one`", 10), ["it is", "`last one`"]);
    }

    #[test]
    fn a_message_stands_to_the_right_of_its_label() {
        assert_eq!(wrap_after_label("one two three", 6, 13), "one two\n      three");
        assert_eq!(wrap_after_label("one two three", 6, usize::MAX), "one two three");
        assert_eq!(wrap_after_label("one\ntwo", 0, 80), "one\ntwo");
        assert_eq!(wrap_after_label("", 6, 80), "");
    }
}
