//! A progress bar for long operations, on a terminal only.
//!
//! Written here because styling a crate's bar would take more code, and the crate would make every start of the program
//! load libm.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr;

use super::table::truncate;
use super::text::{grouped, rough};
use crate::context::{Context, size_of_terminal};
use domain::batch::eta::{CompletionRate, EtaFacts};

/// Drawing more often makes the bar flicker.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: u64 = 30;
/// The width of a bar whose text would not fit beside a wider one.
const NARROW_BAR_WIDTH: u64 = 10;

pub(crate) struct Bar {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    began: Instant,
    drawn: Option<Instant>,
    /// Width of the bar.
    cells: u64,
    /// Unfiltered standard error: redrawing a line needs escape sequences even without colour.
    out: Option<io::Stderr>,
}

impl Bar {
    /// A bar up to `total`, or only a count if that is unknown. It is drawn only where progress is shown.
    pub(crate) fn new(context: &Context, what: &'static str, total: Option<u64>) -> Self {
        let out = context.shows_progress().then(io::stderr);
        Self { what, total, done: 0, began: Instant::now(), drawn: None, cells: BAR_WIDTH, out }
    }

    pub(crate) fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    pub(crate) fn advance(&mut self, by: u64) {
        self.done += by;
        self.draw(|bar| line(bar, bar.began.elapsed()));
    }

    /// Shows the count and a note, without a rate.
    pub(crate) fn show(&mut self, done: u64, note: impl FnOnce() -> String) {
        self.done = done;
        if !self.is_due() {
            return;
        }
        let note = note();
        self.draw(|bar| {
            let gauge = gauge(bar, bar.total.unwrap_or(bar.done));
            if note.is_empty() { gauge } else { format!("{gauge}, {note}") }
        });
    }

    /// Shows only a note.
    pub(crate) fn say(&mut self, note: impl FnOnce() -> String) {
        if self.is_due() {
            let note = note();
            self.draw(|_| note.clone());
        }
    }

    fn is_due(&self) -> bool {
        self.out.is_some() && self.drawn.is_none_or(|at| at.elapsed() >= REDRAW_INTERVAL)
    }

    fn draw(&mut self, line: impl Fn(&Self) -> String) {
        if self.is_due() {
            let mut out = io::stderr();
            // A longer line would wrap, and the wrapped part would not be overwritten.
            let line = self.fitted(size_of_terminal(&out).columns.saturating_sub(1), line);
            // An error here means that the terminal is gone.
            let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
            self.drawn = Some(Instant::now());
        }
    }

    /// The line, with a narrow bar if it is too long otherwise.
    fn fitted(&mut self, columns: usize, line: impl Fn(&Self) -> String) -> String {
        self.cells = BAR_WIDTH;
        let wide = line(self);
        if wide.width() <= columns {
            return wide;
        }
        self.cells = NARROW_BAR_WIDTH;
        truncate(&line(self), columns)
    }

    /// Removes the bar, so that other text can use the line.
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

/// The shortest time left to show.
const MIN_LEFT: Duration = Duration::from_secs(1);

/// `12/s` and `55s left`, as far as they are known.
pub(crate) fn pace(rate: &CompletionRate, unfinished: u64, facts: Option<&EtaFacts>) -> Vec<String> {
    let per_second = rate
        .per_second()
        .map(|rate| if rate >= 10.0 { format!("{rate:.0}/s") } else { format!("{rate:.1}/s") });
    let left = facts.and_then(|facts| rate.time_left(unfinished, facts));
    // The estimate is not more precise than a second, so a shorter one says nothing.
    let left = left.filter(|left| *left >= MIN_LEFT).map(|left| format!("{} left", rough(left)));
    per_second.into_iter().chain(left).collect()
}

/// `enqueuing ━━━━━━━━━━──────────────────── 340,000 of 1,000,000, 142,000/s, 4s left`
fn line(bar: &Bar, elapsed: Duration) -> String {
    let total = bar.total.filter(|total| *total > 0);
    if elapsed < MIN_RATED {
        return total
            .map_or_else(|| format!("{} {}", bar.what, grouped(bar.done)), |total| gauge(bar, total));
    }
    let rate = rate(bar.done, elapsed);
    let Some(total) = total else {
        return format!("{} {}, {}/s", bar.what, grouped(bar.done), grouped(rate));
    };
    let seconds = total.saturating_sub(bar.done).div_ceil(rate.max(1));
    let left = Duration::from_secs(seconds.max(1));
    format!("{}, {}/s, {} left", gauge(bar, total), grouped(rate), rough(left))
}

/// `waiting ━━━━━━━━━━──────────────────── 1 of 3`
fn gauge(bar: &Bar, total: u64) -> String {
    let is_filled = |cell: u64| (cell + 1).saturating_mul(total) <= bar.done.saturating_mul(bar.cells);
    let cells: String = (0..bar.cells).map(|cell| if is_filled(cell) { '━' } else { '─' }).collect();
    format!("{} {cells} {} of {}", bar.what, grouped(bar.done), grouped(total))
}

/// The rate in a shorter time says nothing.
pub(crate) const MIN_RATED: Duration = Duration::from_secs(1);

/// Items per second.
pub(crate) fn rate(done: u64, elapsed: Duration) -> u64 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    done.saturating_mul(1_000) / millis
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(what: &'static str, done: u64, total: Option<u64>) -> Bar {
        Bar { what, total, done, began: Instant::now(), drawn: None, cells: BAR_WIDTH, out: None }
    }

    #[test]
    fn a_bar_gives_way_to_its_text() {
        let shown = |columns| bar("waiting", 1, Some(3)).fitted(columns, |bar| gauge(bar, 3));
        let narrow = format!("waiting {}{} 1 of 3", "━".repeat(3), "─".repeat(7));
        assert_eq!(shown(45), format!("waiting {}{} 1 of 3", "━".repeat(10), "─".repeat(20)));
        assert_eq!(shown(44), narrow);
        assert_eq!(shown(25), narrow);
        assert_eq!(shown(24), narrow.replace(" 3", "…"));
    }

    #[test]
    fn a_line_shows_progress_rate_and_time_left() {
        let after = Duration::from_secs(2);
        assert_eq!(line(&bar("checking", 5_000, None), after), "checking 5,000, 2,500/s");
        assert_eq!(line(&bar("checking", 100, None), Duration::from_millis(3)), "checking 100");
        let shown = line(&bar("enqueuing", 250_000, Some(1_000_000)), after);
        assert_eq!(
            shown,
            format!("enqueuing {}{} 250,000 of 1,000,000, 125,000/s, 6s left", "━".repeat(7), "─".repeat(23))
        );
        assert!(line(&bar("enqueuing", 999, Some(1_000)), after).ends_with(" 1s left"));
        let shown = line(&bar("enqueuing", 9, Some(3)), after);
        assert!(shown.contains(&"━".repeat(30)), "never beyond its width");
    }
}
