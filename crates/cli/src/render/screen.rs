//! The terminal's alternate screen; leaving it restores what was shown before.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::process::{Signal, getpid, kill_process};

use crate::context::{Size, size_of_terminal};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const TO_THE_TOP: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

#[derive(Debug)]
pub(crate) struct Screen {
    /// Standard output, unbuffered: a frame is one write.
    terminal: File,
    has_colors: bool,
}

impl Screen {
    pub(crate) fn enter(has_colors: bool) -> io::Result<Self> {
        let terminal = io::stdout().as_fd().try_clone_to_owned()?.into();
        let screen = Self { terminal, has_colors };
        screen.write(ENTER)?;
        Ok(screen)
    }

    /// The current size; the user may have resized the window.
    pub(crate) fn size(&self) -> Size {
        size_of_terminal(&self.terminal)
    }

    /// Overwrites the previous frame in one write and without clearing it first, so that nothing flickers.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        // A line is cleared before it is written: clearing after a full line would erase its last character.
        let lines: Vec<String> =
            lines.iter().map(|line| format!("{CLEAR_LINE}{}", self.shown(line))).collect();
        let below = if lines.len() < self.size().rows { format!("\r\n{CLEAR_BELOW}") } else { String::new() };
        self.write(&format!("{TO_THE_TOP}{}{below}", lines.join("\r\n")))
    }

    fn shown(&self, line: &str) -> String {
        if self.has_colors { line.to_owned() } else { anstream::adapter::strip_str(line).to_string() }
    }

    /// Restores the terminal and stops this process until it is continued.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.write(LEAVE)?;
        kill_process(getpid(), Signal::STOP)?;
        self.write(ENTER)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        (&self.terminal).write_all(text.as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // An error here means that the terminal is gone.
        let _ = self.write(LEAVE);
    }
}
