//! Lines that wait to be written. When they cannot be written they stay, up to a limit, and are tried again with the next
//! flush.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;

use super::JOURNAL;
use super::file::LogFile;

use domain::text::hostile::Escaping;
use domain::values::timestamp::Timestamp;

/// What waits to be written, at most. Lines beyond it are dropped, and counted.
const MAX_BUFFER_BYTES: usize = 1024 * 1024;
/// The longest line. Commands can be longer; they are kept in the store.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// Room that is kept between two flushes.
const IDLE_BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct Lines {
    /// Who writes, as it stands in each line.
    who: String,
    pub(super) file: LogFile,
    /// Where lines are shown as well.
    echo: Option<Box<dyn Write + Send>>,
    pending: Vec<u8>,
    /// How much of `pending` was shown already.
    echoed: usize,
    dropped: u64,
    latest: Timestamp,
}

impl Lines {
    /// Opens nothing yet; `echo` shows every line on the standard error stream too.
    pub(super) fn open(home: &Path, who: &str, echo: bool) -> Self {
        let echo = echo.then(|| Box::new(io::stderr()) as Box<dyn Write + Send>);
        Self::new(LogFile::new(home.join(JOURNAL)), who, echo)
    }

    pub(super) fn new(file: LogFile, who: &str, echo: Option<Box<dyn Write + Send>>) -> Self {
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

    /// Writes what was noted, if that is possible now. The time of the latest line decides about rotation.
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
        // Writing to a string does not fail.
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
        self.show();
        // What could not be written is tried again with the next flush, so its error need not be known.
        let written = self.file.append(&self.pending, self.latest).unwrap_or(0);
        self.pending.drain(..written);
        self.echoed -= written;
        self.pending.shrink_to(IDLE_BUFFER_BYTES);
    }

    fn show(&mut self) {
        if let Some(echo) = &mut self.echo {
            let _ = echo.write_all(&self.pending[self.echoed..]);
            let _ = echo.flush();
        }
        self.echoed = self.pending.len();
    }
}

#[cfg(test)]
mod tests;
