//! The properties of one thing, a line each, as the `show` verbs print them.

use std::io::{self, Write};
use std::iter;

use unicode_width::UnicodeWidthStr;

use super::text::{printable, wrap};

/// Columns in front of a value.
const INDENT: usize = 16;

/// Writes a property. Each line of its value stays a line, so that a command can be read and copied; a line that does not
/// fit into `width` is continued below, between words.
pub(crate) fn write_fact(out: &mut dyn Write, name: &str, value: &str, width: usize) -> io::Result<()> {
    let room = width.saturating_sub(INDENT);
    let lines = value.split('\n').flat_map(|line| fitted(&printable(line), room));
    for (line, label) in lines.zip(iter::once(name).chain(iter::repeat(""))) {
        writeln!(out, "  {label:<14}{line}")?;
    }
    Ok(())
}

fn fitted(line: &str, room: usize) -> Vec<String> {
    if line.width() <= room { vec![line.to_owned()] } else { wrap(line, room) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &str, width: usize) -> String {
        let mut out = Vec::new();
        write_fact(&mut out, "command", value, width).expect("writing to a Vec does not fail");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_long_value_is_continued_below_its_beginning() {
        let indent = " ".repeat(INDENT);
        assert_eq!(written("make all test", 24), format!("  command       make all\n{indent}test\n"));
        assert_eq!(written("make all test", usize::MAX), "  command       make all test\n");
        assert_eq!(written("/a/long/path", 20), "  command       /a/long/path\n", "a word is not broken");
    }

    #[test]
    fn each_line_of_a_value_stays_a_line_with_its_indentation() {
        let indent = " ".repeat(INDENT);
        let expected = format!("  command       if true\n{indent}  then\n{indent}fi\\u{{1b}}\n");
        assert_eq!(written("if true\n  then\nfi\u{1b}", 80), expected);
    }
}
