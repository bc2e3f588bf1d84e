//! Text and numbers for people: control characters made visible, how long a job has waited.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use domain::job::Job;
use domain::job::life::{Lease, State, StateName};
pub(crate) use domain::text::hostile::{printable, printable_lines};
use domain::values::clock::Clock;
pub(crate) use domain::values::size::rough_size;
pub(crate) use domain::values::span::rough_span as rough;

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

/// The time that a job waits for, or how long it has been in its state.
pub(crate) fn when(job: &Job, clock: &Clock) -> String {
    let (due_at, now) = (job.life.due_at, clock.now);
    match &job.life.state {
        State::Pending { blocked_by: 0 } if due_at > now => clock.until(due_at),
        State::Pending { blocked_by: 0 } => clock.ago(job.created_at),
        State::Pending { blocked_by } => format!("waits for {}", jobs(u64::from(*blocked_by))),
        State::Processing(Lease { paused_at: Some(since), .. }) => {
            format!("paused since {}", clock.time(*since))
        }
        State::Processing(lease) => format!("for {}", clock.elapsed(lease.started_at)),
        State::Failed if due_at > now => format!("retry in {}", clock.left(due_at)),
        State::Failed => "retry due".to_owned(),
        State::Completed { finished_at }
        | State::Dead { finished_at, .. }
        | State::Cancelled { finished_at, .. } => clock.ago(*finished_at),
    }
}

/// `processing (paused)`
pub(crate) fn state_text(state: &State) -> String {
    let paused = if state.paused_at().is_some() { " (paused)" } else { "" };
    format!("{}{paused}", state.name().name())
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
