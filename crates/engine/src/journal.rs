//! The journal of the workers: `worker.log` in the home, where they write down what they did, one line for each event.
//!
//! Nothing waits for it and nothing fails because of it: lines are kept in memory (`lines`) until somebody flushes.
//! `file` appends them to the file that all processes of a home share, and rotates it; `entries` has the wording.

mod entries;
mod file;
mod lines;

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub(super) use entries::Chain;
use lines::Lines;

use domain::values::timestamp::Timestamp;
use sys::clock::{Clock, SystemClock};

/// Its name in the home.
pub(super) const JOURNAL: &str = "worker.log";

/// The journal as all threads of a process share it.
pub(super) struct Journal {
    lines: Mutex<Lines>,
    /// The last trouble, and when it was noted: what fails again and again is not told each time.
    trouble: Mutex<Option<(String, Instant)>>,
}

/// How long the same trouble is not told again.
const SILENCE: Duration = Duration::from_secs(10);

impl Journal {
    /// Opens nothing yet; `echo` shows every line on the standard error stream too.
    pub(super) fn open(home: &Path, who: &str, echo: bool) -> Self {
        Self { lines: Mutex::new(Lines::open(home, who, echo)), trouble: Mutex::new(None) }
    }

    /// Writes what was noted, if that is possible now.
    pub(super) fn flush(&self) {
        self.lines().flush();
    }

    fn note(&self, text: fmt::Arguments<'_>) {
        self.lines().note(Timestamp::from_millis(SystemClock.wall_millis()), text);
    }

    /// Notes something that may come again and again.
    fn note_trouble(&self, text: String) {
        let mut last = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |(known, at): &(String, Instant)| *known == text && at.elapsed() < SILENCE;
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
