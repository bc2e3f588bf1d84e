//! Aligned columns.
//!
//! Written here because a hundred lines suffice for colour and for fitting into the terminal, while a crate would pull in
//! a terminal library.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::iter::repeat_n;

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::column_widths::{Column, GAP, fit, needed_width};
use super::text::{grouped, printable, state_style};
use domain::job::life::StateName;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    /// Columns to leave out on a narrow terminal, in this order.
    optional: Vec<usize>,
    /// Text columns that are truncated only if nothing else makes the table fit.
    whole: Vec<usize>,
    rows: Vec<Vec<Cell>>,
    /// The columns and their widths, once the first part is written.
    written: Option<(Vec<Column>, Vec<Option<usize>>)>,
}

#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    /// Columns that the text takes.
    width: usize,
    style: Style,
    /// Where text is left out if it does not fit.
    cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    End,
    Middle,
}

impl Cell {
    pub(crate) fn styled(text: &str, style: Style) -> Self {
        let text = printable(text).into_owned();
        Self { width: text.width(), text, style, cut: Cut::End }
    }

    /// Commands and ids often differ at their end only, so a long one loses its middle.
    pub(crate) fn command(text: &str) -> Self {
        Self { cut: Cut::Middle, ..text.into() }
    }

    /// As much of the text as fits, and the columns that it takes.
    fn fitted(&self, width: usize) -> (Cow<'_, str>, usize) {
        if self.width <= width {
            return (Cow::Borrowed(&self.text), self.width);
        }
        let text = match self.cut {
            Cut::End => truncate(&self.text, width),
            Cut::Middle => truncate_middle(&self.text, width),
        };
        let taken = text.width();
        (Cow::Owned(text), taken)
    }
}

/// A number in the colour of its state; zero is dimmed.
pub(crate) fn counted(counts: &BTreeMap<StateName, u64>, state: StateName) -> Cell {
    let count = counts.get(&state).copied().unwrap_or(0);
    let style = if count == 0 { Style::new().dimmed() } else { state_style(state) };
    Cell::styled(&grouped(count), style)
}

/// Those of a row that are shown.
pub(crate) fn chosen<T, const N: usize>(all: [T; N], shown: [bool; N]) -> Vec<T> {
    all.into_iter().zip(shown).filter_map(|(one, is_shown)| is_shown.then_some(one)).collect()
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text.as_ref(), Style::new())
    }
}

/// A style is an escape sequence from `ESC` to an `m`; `RESET` ends all styles.
const ESC: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

impl Table {
    pub(crate) fn new(columns: &[impl AsRef<str>]) -> Self {
        let columns = columns.iter().map(|name| (name.as_ref().to_owned(), Align::Left)).collect();
        Self { columns, optional: Vec::new(), whole: Vec::new(), rows: Vec::new(), written: None }
    }

    /// Aligns these columns to the right.
    pub(crate) fn with_numbers(mut self, names: &[impl AsRef<str>]) -> Self {
        for (name, align) in &mut self.columns {
            if names.iter().any(|number| number.as_ref() == name) {
                *align = Align::Right;
            }
        }
        self
    }

    /// Leaves out these columns, in this order, if not all fit.
    pub(crate) fn with_optional_columns(mut self, names: &[&str]) -> Self {
        let place = |name: &&str| self.columns.iter().position(|(known, _)| known == name);
        self.optional = names.iter().filter_map(place).collect();
        self
    }

    /// Truncates these columns only if nothing else makes the table fit.
    pub(crate) fn with_whole_columns(mut self, names: &[&str]) -> Self {
        let place = |name: &&str| self.columns.iter().position(|(known, _)| known == name);
        self.whole = names.iter().filter_map(place).collect();
        self
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes the rows added so far so that they fit into `width` (see [`fit`]), and drops them, so that a long table can be
    /// written in parts. The first part begins with the heading. On a terminal it sets the width of text columns;
    /// elsewhere, where nothing is truncated, a later part widens a column if it needs to.
    pub(crate) fn write(&mut self, out: &mut (impl Write + ?Sized), width: usize) -> io::Result<()> {
        let measured = self.measured();
        let (known, widths) = match self.written.take() {
            None => {
                let widths = fit(&measured, &self.optional, width);
                self.write_row(out, &self.head(), &widths)?;
                (measured, widths)
            }
            Some((known, _)) if width == usize::MAX => {
                let known: Vec<Column> = known.into_iter().zip(measured).map(Column::or_wider).collect();
                let widths = fit(&known, &self.optional, width);
                (known, widths)
            }
            Some((known, widths)) => {
                let no_number_cut = |(width, column): (Option<usize>, Column)| {
                    width.map(|width| if column.is_text { width } else { width.max(column.content) })
                };
                (known, widths.into_iter().zip(measured).map(no_number_cut).collect())
            }
        };
        for row in std::mem::take(&mut self.rows) {
            self.write_row(out, &row, &widths)?;
        }
        self.written = Some((known, widths));
        Ok(())
    }

    /// Whether nothing has to be truncated or left out.
    pub(crate) fn fits(&self, width: usize) -> bool {
        needed_width(&self.measured()) <= width
    }

    fn head(&self) -> Vec<Cell> {
        self.columns.iter().map(|(name, _)| Cell::styled(name, Style::new().bold())).collect()
    }

    /// Writes an empty line and the table; nothing if it has no rows.
    pub(crate) fn write_section(mut self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write(out, width)
    }

    /// The lines that [`Table::write`] would write.
    pub(crate) fn lines(mut self, width: usize) -> Vec<String> {
        let mut text = Vec::new();
        self.write(&mut text, width).expect("writing to a Vec does not fail");
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    fn measured(&self) -> Vec<Column> {
        let measure = |(at, (name, align)): (usize, &(String, Align))| {
            let widths = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width);
            let content = widths.max().unwrap_or(0);
            let is_whole = self.whole.contains(&at);
            Column { head: name.width(), content, is_text: *align == Align::Left, is_whole }
        };
        self.columns.iter().enumerate().map(measure).collect()
    }

    fn write_row(
        &self,
        out: &mut (impl Write + ?Sized),
        row: &[Cell],
        widths: &[Option<usize>],
    ) -> io::Result<()> {
        let last = row.len().saturating_sub(1);
        let shown = row.iter().zip(widths).enumerate().filter_map(|(at, (cell, width))| {
            let (_, align) = &self.columns[at];
            width.map(|width| (at, cell, *align, width))
        });
        let mut line = String::new();
        for (nth, (at, cell, align, width)) in shown.enumerate() {
            let (text, taken) = cell.fitted(width);
            let padding = width.saturating_sub(taken);
            let (before, after) = match align {
                Align::Right => (padding, 0),
                Align::Left if at == last => (0, 0),
                Align::Left => (0, padding),
            };
            line.extend(repeat_n(' ', before + if nth == 0 { 0 } else { GAP }));
            push_styled(&mut line, &text, cell.style);
            line.extend(repeat_n(' ', after));
        }
        line.push('\n');
        out.write_all(line.as_bytes())
    }
}

fn push_styled(line: &mut String, text: &str, style: Style) {
    if style.is_plain() {
        line.push_str(text);
    } else {
        // Writing to a string does not fail.
        let _ = write!(line, "{style}{text}{style:#}");
    }
}

/// As much of the text as fits, with an ellipsis if something is missing. Styles take no room.
pub(crate) fn truncate(line: &str, width: usize) -> String {
    if line.width() <= width || anstream::adapter::strip_str(line).to_string().width() <= width {
        return line.to_owned();
    }
    let mut kept = String::new();
    let mut room = width.saturating_sub(1);
    let mut in_escape = false;
    for character in line.chars() {
        in_escape |= character == ESC;
        let taken = if in_escape { 0 } else { character.width().unwrap_or(0) };
        if taken > room {
            break;
        }
        room -= taken;
        kept.push(character);
        in_escape &= character != 'm';
    }
    kept.push('…');
    if kept.contains(ESC) {
        kept.push_str(RESET);
    }
    kept
}

/// The beginning and the end of the text, with an ellipsis between them if something is missing.
pub(crate) fn truncate_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let beginning = within(text.chars(), room.div_ceil(2));
    let end = within(text.chars().rev(), room - beginning.width());
    beginning + "…" + &end.chars().rev().collect::<String>()
}

/// As many of the characters as fit.
fn within(characters: impl Iterator<Item = char>, mut room: usize) -> String {
    let fits = |character: &char| {
        let taken = character.width().unwrap_or(0);
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_truncated() {
        let mut table = Table::new(&["ID", "N", "COMMAND"]).with_numbers(&["N"]);
        table.row(vec!["a".into(), "10".into(), "echo 漢字 and more than fits".into()]);
        table.row(vec!["long-id".into(), "9".into(), "true".into()]);
        let mut out = Vec::new();
        table.write(&mut anstream::StripStream::new(&mut out), 26).expect("writing to a Vec does not fail");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "ID        N  COMMAND\na        10  echo 漢字 an…\nlong-id   9  true\n");
    }

    #[test]
    fn a_table_written_in_parts_has_one_heading_and_stays_aligned() {
        let parts = |width| {
            let mut table = Table::new(&["ID", "N", "COMMAND"]).with_numbers(&["N"]);
            let mut out = Vec::new();
            for (id, number, command) in [("a", "1", "true"), ("longer", "22", "sleep 1"), ("b", "3", "true")]
            {
                table.row(vec![id.into(), number.into(), command.into()]);
                let mut plain = anstream::StripStream::new(&mut out);
                table.write(&mut plain, width).expect("writing to a Vec does not fail");
            }
            String::from_utf8(out).expect("text")
        };
        let piped = "ID  N  COMMAND\na   1  true\nlonger  22  sleep 1\nb        3  true\n";
        assert_eq!(parts(usize::MAX), piped, "columns widen in a pipe");
        let shown = "ID  N  COMMAND\na   1  true\nl…  22  sleep 1\nb    3  true\n";
        assert_eq!(parts(80), shown, "a number is never truncated");
    }

    #[test]
    fn a_command_loses_its_middle() {
        for (width, shown) in
            [(0, "…"), (1, "…"), (2, "m…"), (5, "ma…漢"), (6, "mak…漢"), (8, "make…t漢"), (30, "make test漢")]
        {
            assert_eq!(truncate_middle("make test漢", width), shown, "{width}");
        }
    }

    #[test]
    fn a_styled_line_is_truncated_by_its_visible_width() {
        let red = anstyle::AnsiColor::Red.on_default();
        let line = format!("{red}漢字{red:#} and more");
        assert_eq!(truncate(&line, 13), line);
        assert_eq!(truncate(&line, 8), format!("{red}漢字{red:#} an…{RESET}"));
        assert_eq!(truncate(&line, 2), format!("{red}…{RESET}"));
        assert_eq!(truncate("plain", 3), "pl…");
    }
}
