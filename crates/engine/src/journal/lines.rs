//! Lines that wait to be written. Lines that cannot be written are kept, up to a limit, and the next flush tries again.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use super::JOURNAL;
use super::file::JournalFile;

use domain::text::hostile::Escaping;
use domain::values::clock::{Clock, TimeFormat};
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use sys::zone;

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
    echo: Option<Echo>,
    pending: Vec<u8>,
    dropped: u64,
    latest: Timestamp,
}

impl Lines {
    /// Opens no file yet; `echo` also prints every line to standard error.
    pub(super) fn open(home: &Path, who: &str, echo: bool) -> Self {
        Self::new(JournalFile::new(home.join(JOURNAL)), who, echo.then(Echo::to_stderr))
    }

    pub(super) fn new(file: JournalFile, who: &str, echo: Option<Echo>) -> Self {
        let who = who.to_owned();
        Self { who, file, echo, pending: Vec::new(), dropped: 0, latest: Timestamp::EPOCH }
    }

    /// People read this number instead of the id, as long as the job runs.
    pub(super) fn name_by_number(&mut self, id: &JobId, number: u64) {
        if let Some(numbers) =
            self.echo.as_mut().and_then(|echo| echo.numbers.as_mut()).filter(|_| id.is_generated())
        {
            numbers.insert(id.to_string(), number);
        }
    }

    pub(super) fn forget_number(&mut self, id: &JobId) {
        if let Some(numbers) = self.echo.as_mut().and_then(|echo| echo.numbers.as_mut()) {
            numbers.remove(id.as_str());
        }
    }

    /// Adds a line, to be written with the next flush.
    pub(super) fn note(&mut self, now: Timestamp, text: fmt::Arguments<'_>) {
        self.latest = now;
        let line = self.line(text);
        if let Some(echo) = &mut self.echo {
            echo.note(now, &line, text);
        }
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
        escaped(format_args!("{} {} {text}", self.latest, self.who))
    }

    fn write(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        if let Some(echo) = &mut self.echo {
            echo.flush();
        }
        // The next flush tries again to write the rest, so the error can be ignored.
        let written = self.file.append(&self.pending, self.latest).unwrap_or(0);
        self.pending.drain(..written);
        self.pending.shrink_to(IDLE_BUFFER_BYTES);
    }
}

/// The text as one line of limited length.
fn escaped(text: fmt::Arguments<'_>) -> String {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write!(Escaping(&mut line), "{text}");
    if line.len() > MAX_LINE_BYTES {
        let end = (0..=MAX_LINE_BYTES).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        line.push('…');
    }
    line.push('\n');
    line
}

/// A second output for the lines. People on a terminal get local times and the numbers of jobs.
pub(super) struct Echo {
    out: Box<dyn Write + Send>,
    /// The numbers of running jobs with a generated id; `None` if programs read the output.
    numbers: Option<HashMap<String, u64>>,
    format: TimeFormat,
    pending: String,
}

impl Echo {
    fn to_stderr() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self::new(Box::new(io::stderr()), is_terminal, TimeFormat::Short(zone::local()))
    }

    pub(super) fn new(out: Box<dyn Write + Send>, is_terminal: bool, format: TimeFormat) -> Self {
        Self { out, numbers: is_terminal.then(HashMap::new), format, pending: String::new() }
    }

    /// Adds a line: as it is in the file, or its text for people.
    fn note(&mut self, now: Timestamp, line: &str, text: fmt::Arguments<'_>) {
        let shown = match &self.numbers {
            None => line.to_owned(),
            Some(numbers) => {
                let clock = Clock::new(now, self.format.clone());
                let text = text.to_string();
                // What follows the colon may be a command, which stays as it is.
                let (head, rest) = text.split_once(": ").unwrap_or((&text, ""));
                let word = |word: &str| numbers.get(word).map_or_else(|| word.to_owned(), u64::to_string);
                let head: Vec<String> = head.split(' ').map(word).collect();
                let colon = if rest.is_empty() { "" } else { ": " };
                escaped(format_args!("{} {}{colon}{rest}", clock.time(now), head.join(" ")))
            }
        };
        if self.pending.len() + shown.len() <= MAX_BUFFER_BYTES {
            self.pending.push_str(&shown);
        }
    }

    fn flush(&mut self) {
        let _ = self.out.write_all(self.pending.as_bytes());
        let _ = self.out.flush();
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests;
