//! Text and numbers for people: control characters made visible, times relative to now.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use domain::job::Job;
use domain::job::life::{State, StateName};
pub(crate) use domain::text::hostile::{printable, printable_lines};
pub(crate) use domain::values::size::rough_size;
pub(crate) use domain::values::span::rough_span as rough;
use domain::values::timestamp::Timestamp;

/// Breaks text between words into lines of at most `width` columns.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    if now.since(at) < Duration::from_secs(1) {
        return "just now".to_owned();
    }
    format!("{} ago", rough(now.since(at)))
}

/// A time, and its distance from now.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("{at} (in {})", rough(at.since(now))) } else { format!("{at} ({})", ago(at, now)) }
}

/// The time that a job waits for, or how long it has been in its state.
pub(crate) fn when(job: &Job, now: Timestamp) -> String {
    let due_at = job.life.due_at;
    match &job.life.state {
        State::Pending { blocked_by: 0 } if due_at > now => format!("in {}", rough(due_at.since(now))),
        State::Pending { blocked_by: 0 } => ago(job.created_at, now),
        State::Pending { blocked_by } => format!("waits for {}", jobs(u64::from(*blocked_by))),
        State::Processing(lease) => format!("for {}", rough(now.since(lease.started_at))),
        State::Failed if due_at > now => format!("retry in {}", rough(due_at.since(now))),
        State::Failed => "retry due".to_owned(),
        State::Completed { finished_at }
        | State::Dead { finished_at, .. }
        | State::Cancelled { finished_at, .. } => ago(*finished_at, now),
    }
}

/// Green is good, red needs attention, yellow will be retried.
pub(crate) fn state_style(state: StateName) -> Style {
    match state {
        StateName::Pending => Style::new(),
        StateName::Processing => AnsiColor::Cyan.on_default(),
        StateName::Completed => AnsiColor::Green.on_default(),
        StateName::Failed => AnsiColor::Yellow.on_default(),
        StateName::Dead => AnsiColor::Red.on_default().bold(),
        StateName::Cancelled => Style::new().dimmed(),
    }
}

/// `1,234,567`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `2 jobs`
pub(crate) fn jobs(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "job" } else { "jobs" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字 a", 4), ["漢字漢字", "a"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("all of it", usize::MAX), ["all of it"]);
    }

    #[test]
    fn newlines_and_tabs_are_not_escaped() {
        assert_eq!(printable_lines("a\tb\nc\r\u{1b}[0m"), "a\tb\nc\\r\\u{1b}[0m");
    }

    #[test]
    fn long_numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
