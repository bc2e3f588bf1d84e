//! Writes cells as escape sequences. A frame is one write, so that nothing flickers.
//!
//! ratatui has a backend of this kind in a crate of its own, together with an event loop and signal handlers. `top` waits
//! for keys, signals and data in one `poll`, and needs only this much of it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use ratatui::style::{Color, Modifier};
use rustix::termios::tcgetwinsize;

/// The size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { width: 80, height: 24 };
/// A larger screen is drawn in part: no text needs more.
const MAX_SIDE: u16 = 1_000;

/// The attributes that are written, and the number that sets each.
const ATTRIBUTES: [(Modifier, u8); 6] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

#[derive(Debug)]
pub(crate) struct AnsiBackend {
    terminal: File,
    /// What the next flush writes.
    pending: String,
}

impl AnsiBackend {
    pub(crate) fn new(terminal: File) -> Self {
        Self { terminal, pending: String::new() }
    }

    /// Adds text to the next write.
    pub(crate) fn push(&mut self, text: &str) {
        self.pending.push_str(text);
    }
}

/// The attributes and colours of a cell.
type Look = (Modifier, Color, Color);

fn write_look(out: &mut String, (modifier, foreground, background): Look) {
    out.push_str("\x1b[0");
    for (attribute, number) in ATTRIBUTES {
        if modifier.contains(attribute) {
            let _ = write!(out, ";{number}");
        }
    }
    write_color(out, foreground, 30);
    write_color(out, background, 40);
    out.push('m');
}

/// `base` is 30 for the foreground and 40 for the background; bright colours are 60 further.
fn write_color(out: &mut String, color: Color, base: u8) {
    let (basic, bright) = (|number: u8| base + number, |number: u8| base + 60 + number);
    // Writing to a string cannot fail.
    let _ = match color {
        Color::Reset => Ok(()),
        Color::Black => write!(out, ";{}", basic(0)),
        Color::Red => write!(out, ";{}", basic(1)),
        Color::Green => write!(out, ";{}", basic(2)),
        Color::Yellow => write!(out, ";{}", basic(3)),
        Color::Blue => write!(out, ";{}", basic(4)),
        Color::Magenta => write!(out, ";{}", basic(5)),
        Color::Cyan => write!(out, ";{}", basic(6)),
        Color::Gray => write!(out, ";{}", basic(7)),
        Color::DarkGray => write!(out, ";{}", bright(0)),
        Color::LightRed => write!(out, ";{}", bright(1)),
        Color::LightGreen => write!(out, ";{}", bright(2)),
        Color::LightYellow => write!(out, ";{}", bright(3)),
        Color::LightBlue => write!(out, ";{}", bright(4)),
        Color::LightMagenta => write!(out, ";{}", bright(5)),
        Color::LightCyan => write!(out, ";{}", bright(6)),
        Color::White => write!(out, ";{}", bright(7)),
        Color::Rgb(red, green, blue) => write!(out, ";{};2;{red};{green};{blue}", base + 8),
        Color::Indexed(index) => write!(out, ";{};5;{index}", base + 8),
    };
}

impl Backend for AnsiBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut look = None;
        let mut next = None;
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                let _ = write!(self.pending, "\x1b[{};{}H", y + 1, x + 1);
            }
            next = Some((x + 1, y));
            let wanted = (cell.modifier, cell.fg, cell.bg);
            if look != Some(wanted) {
                write_look(&mut self.pending, wanted);
                look = Some(wanted);
            }
            self.pending.push_str(cell.symbol());
        }
        if look.is_some() {
            self.pending.push_str("\x1b[0m");
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.push("\x1b[?25l");
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.push("\x1b[?25h");
        Ok(())
    }

    /// Only a viewport within the screen asks for it, and `top` has the whole screen.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        let _ = write!(self.pending, "\x1b[{};{}H", y + 1, x + 1);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.push("\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(&self.terminal).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        Ok(match size {
            (0, _) | (_, 0) => DEFAULT_SIZE,
            (columns, rows) => Size { width: columns.min(MAX_SIDE), height: rows.min(MAX_SIDE) },
        })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.terminal.write_all(self.pending.as_bytes())?;
            self.pending.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_begins_with_a_reset() {
        for (look, written) in [
            ((Modifier::empty(), Color::Reset, Color::Reset), "\x1b[0m"),
            ((Modifier::BOLD | Modifier::REVERSED, Color::Red, Color::Reset), "\x1b[0;1;7;31m"),
            ((Modifier::empty(), Color::DarkGray, Color::White), "\x1b[0;90;107m"),
            ((Modifier::empty(), Color::Rgb(1, 2, 3), Color::Indexed(9)), "\x1b[0;38;2;1;2;3;48;5;9m"),
            ((Modifier::HIDDEN, Color::Reset, Color::Reset), "\x1b[0m"),
        ] {
            let mut out = String::new();
            write_look(&mut out, look);
            assert_eq!(out, written);
        }
    }
}
