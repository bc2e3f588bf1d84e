//! The journal of the workers: `worker.log` in the home, with one line for each event.
//!
//! Nothing waits for it and nothing fails because of it: lines are kept in memory (`lines`) until the next flush.
//! `file` appends them to the file that all processes of a home share, and rotates it; `entries` formats some of them,
//! and `attempts` reads those about attempts.

pub(super) mod attempts;
mod entries;
mod file;
mod lines;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) use entries::chain;
use lines::Lines;

use domain::values::timestamp::Timestamp;
use sys::clock::{Clock, SystemClock};

/// Its name in the home.
pub(super) const JOURNAL: &str = "worker.log";

/// The journal, shared by all threads of a process.
pub(super) struct Journal {
    lines: Mutex<Lines>,
    /// The last repeatable line and its time: an error that recurs is not logged each time.
    last_repeatable: Mutex<Option<(String, Instant)>>,
}

/// How long the same line is not logged again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);

impl Journal {
    /// Opens no file yet; `echo` also prints every line to standard error.
    pub(super) fn open(home: &Path, who: &str, echo: bool) -> Self {
        Self { lines: Mutex::new(Lines::open(home, who, echo)), last_repeatable: Mutex::new(None) }
    }

    /// Writes pending lines, if that is possible now.
    pub(super) fn flush(&self) {
        self.lines().flush();
    }

    pub(super) fn note(&self, text: fmt::Arguments<'_>) {
        self.lines().note(Timestamp::from_millis(SystemClock.wall_millis()), text);
    }

    /// Notes a line that may recur in quick succession.
    pub(super) fn note_repeatable(&self, text: String) {
        let mut last = self.last_repeatable.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |(known, at): &(String, Instant)| *known == text && at.elapsed() < REPEAT_INTERVAL;
        if !last.as_ref().is_some_and(is_known) {
            self.note(format_args!("{text}"));
            *last = Some((text, Instant::now()));
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Journal")
    }
}
