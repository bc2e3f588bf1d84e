//! A progress bar for what takes long, on a terminal only.
//!
//! Home-made: it takes less code than it would take to style a crate's, and the crate would have every start of the
//! program load the mathematical library.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::table::cut;
use super::text::{grouped, rough};
use crate::context::{Context, size_of_terminal};

/// Drawing more often than this only makes it flicker.
const PAUSE: Duration = Duration::from_millis(100);
const BAR_WIDTH: u64 = 30;
/// On a terminal with fewer columns what is said of it is worth more than the bar.
const NARROW: usize = 80;
const NARROW_BAR_WIDTH: u64 = 10;

pub(crate) struct Bar {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    began: Instant,
    drawn: Option<Instant>,
    /// How wide the bar itself is.
    cells: u64,
    /// The terminal itself: a line that is drawn over must work without colour, too.
    out: Option<io::Stderr>,
}

impl Bar {
    /// A bar that goes to `total`, or only counts where that is unknown. Nobody sees it where nobody watches.
    pub(crate) fn new(context: &Context, what: &'static str, total: Option<u64>) -> Self {
        let out = context.person_watches().then(io::stderr);
        Self { what, total, done: 0, began: Instant::now(), drawn: None, cells: BAR_WIDTH, out }
    }

    /// What it goes to has changed.
    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.done += by;
        self.draw(|bar| line(bar, bar.began.elapsed()));
    }

    /// Says how many are done and what goes on, where how fast it goes means nothing.
    pub(crate) fn show(&mut self, done: u64, note: impl FnOnce() -> String) {
        self.done = done;
        self.draw(|bar| {
            let gauge = gauge(bar, bar.total.unwrap_or(bar.done));
            let note = note();
            if note.is_empty() { gauge } else { format!("{gauge}, {note}") }
        });
    }

    /// Says what goes on where there is nothing to count.
    pub(crate) fn say(&mut self, note: impl FnOnce() -> String) {
        self.draw(|_| note());
    }

    fn draw(&mut self, line: impl FnOnce(&Self) -> String) {
        let is_due = self.drawn.is_none_or(|at| at.elapsed() >= PAUSE);
        if is_due && self.out.is_some() {
            let mut out = io::stderr();
            let columns = size_of_terminal(&out).columns;
            self.cells = if columns < NARROW { NARROW_BAR_WIDTH } else { BAR_WIDTH };
            // A longer line would run over into the next, which is not drawn over.
            let line = cut(&line(self), columns.saturating_sub(1));
            // A terminal that went away takes the bar with it.
            let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
            self.drawn = Some(Instant::now());
        }
    }

    /// Leaves the line as it was, for something else to be said.
    pub(crate) fn clear(&mut self) {
        if let (Some(out), Some(_)) = (&mut self.out, self.drawn.take()) {
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `enqueuing ━━━━━━━━━━──────────────────── 340,000 of 1,000,000, 142,000/s, 4s left`
fn line(bar: &Bar, elapsed: Duration) -> String {
    let rate = rate(bar.done, elapsed);
    let Some(total) = bar.total.filter(|total| *total > 0) else {
        return format!("{} {}, {}/s", bar.what, grouped(bar.done), grouped(rate));
    };
    let left = Duration::from_secs(total.saturating_sub(bar.done) / rate.max(1));
    format!("{}, {}/s, {} left", gauge(bar, total), grouped(rate), rough(left))
}

/// `waiting ━━━━━━━━━━──────────────────── 1 of 3`
fn gauge(bar: &Bar, total: u64) -> String {
    let is_filled = |cell: u64| (cell + 1).saturating_mul(total) <= bar.done.saturating_mul(bar.cells);
    let cells: String = (0..bar.cells).map(|cell| if is_filled(cell) { '━' } else { '─' }).collect();
    format!("{} {cells} {} of {}", bar.what, grouped(bar.done), grouped(total))
}

/// How many a second.
pub(crate) fn rate(done: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    done.saturating_mul(1_000) / millis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long() {
        let after = Duration::from_secs(2);
        let bar = |what, done, total| Bar {
            what,
            total,
            done,
            began: Instant::now(),
            drawn: None,
            cells: BAR_WIDTH,
            out: None,
        };
        assert_eq!(line(&bar("checking", 5_000, None), after), "checking 5,000, 2,500/s");
        let shown = line(&bar("enqueuing", 250_000, Some(1_000_000)), after);
        assert_eq!(
            shown,
            format!("enqueuing {}{} 250,000 of 1,000,000, 125,000/s, 6s left", "━".repeat(7), "─".repeat(23))
        );
        let shown = line(&bar("enqueuing", 9, Some(3)), after);
        assert!(shown.contains(&"━".repeat(30)), "never beyond its end");
    }
}
