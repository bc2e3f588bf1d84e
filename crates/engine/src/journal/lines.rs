//! Lines that wait to be written. Lines that cannot be written are kept, up to a limit, and the next flush tries again.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;

use super::JOURNAL;
use super::file::JournalFile;

use domain::text::hostile::Escaping;
use domain::values::timestamp::Timestamp;

/// The limit of pending lines. Further lines are dropped and counted.
const MAX_BUFFER_BYTES: usize = 1024 * 1024;
/// The longest line. Commands can be longer; the store has them in full.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// The buffer capacity that is kept between two flushes.
const IDLE_BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct Lines {
    /// The name of the writing process, which is in each line.
    who: String,
    pub(super) file: JournalFile,
    /// A second output for all lines.
    echo: Option<Box<dyn Write + Send>>,
    pending: Vec<u8>,
    /// How much of `pending` was already echoed.
    echoed: usize,
    dropped: u64,
    latest: Timestamp,
}

impl Lines {
    /// Opens no file yet; `echo` also prints every line to standard error.
    pub(super) fn open(home: &Path, who: &str, echo: bool) -> Self {
        let echo = echo.then(|| Box::new(io::stderr()) as Box<dyn Write + Send>);
        Self::new(JournalFile::new(home.join(JOURNAL)), who, echo)
    }

    pub(super) fn new(file: JournalFile, who: &str, echo: Option<Box<dyn Write + Send>>) -> Self {
        let who = who.to_owned();
        Self { who, file, echo, pending: Vec::new(), echoed: 0, dropped: 0, latest: Timestamp::EPOCH }
    }

    /// Adds a line, to be written with the next flush.
    pub(super) fn note(&mut self, now: Timestamp, text: fmt::Arguments<'_>) {
        self.latest = now;
        let line = self.line(text);
        if self.pending.len() + line.len() > MAX_BUFFER_BYTES {
            self.dropped += 1;
        } else {
            self.pending.extend_from_slice(line.as_bytes());
        }
    }

    /// Writes pending lines, if that is possible now. The time of the latest line decides whether to rotate.
    pub(super) fn flush(&mut self) {
        self.write();
        if self.pending.is_empty() && self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            self.note(self.latest, format_args!("… {dropped} lines dropped"));
            self.write();
        }
    }

    fn line(&self, text: fmt::Arguments<'_>) -> String {
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _ = write!(Escaping(&mut line), "{} {} {text}", self.latest, self.who);
        if line.len() > MAX_LINE_BYTES {
            let end = (0..=MAX_LINE_BYTES).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
            line.push('…');
        }
        line.push('\n');
        line
    }

    fn write(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if let Some(echo) = &mut self.echo {
            let _ = echo.write_all(&self.pending[self.echoed..]);
            let _ = echo.flush();
        }
        self.echoed = self.pending.len();
        // The next flush tries again to write the rest, so the error can be ignored.
        let written = self.file.append(&self.pending, self.latest).unwrap_or(0);
        self.pending.drain(..written);
        self.echoed -= written;
        self.pending.shrink_to(IDLE_BUFFER_BYTES);
    }
}

#[cfg(test)]
mod tests;
