//! The output of an attempt. Colours are kept; everything else that could control a terminal is shown as escapes.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::canvas::{Canvas, inset};
use super::times::{clock, short_span};
use crate::ansi::spans;
use crate::data::diff::DiffLine;
use crate::data::log::{LogLine, LogText};
use crate::state::{Focus, State};
use crate::theme::{Colors, Role};
use domain::log::Stream;
use domain::text::terminal_text::TerminalText;

pub(crate) fn draw(state: &State, place: Rect, canvas: &mut Canvas<'_>) {
    if place.height < 2 {
        return;
    }
    let theme = canvas.theme;
    let Some(log) = state.shown_log() else {
        canvas.rule(Rect { height: 1, ..place }, "log", "");
        let text = match state.job() {
            Some(_) if state.is_frozen => "frozen; space continues",
            Some(_) => "no output yet",
            None => "",
        };
        canvas.text(inset(place, 1), 1, text, theme.style(Role::Quiet));
        return;
    };
    canvas.rule(Rect { height: 1, ..place }, &title(state, log), &position(state, log));
    let body = Rect { y: place.y + 1, height: place.height - 1, ..inset(place, 1) };
    if let Some(error) = &log.error {
        canvas.text(body, 0, error, theme.style(Role::Error));
        return;
    }
    if state.log.is_diff && state.focus == Focus::Log {
        draw_diff(state, log, body, canvas);
        return;
    }
    let lines = state.shown_lines();
    if lines.is_empty() {
        let yet = if log.is_over { "" } else { " yet" };
        let text = match state.log.only {
            None if log.is_over => "it printed nothing".to_owned(),
            None => "nothing printed yet".to_owned(),
            Some(Stream::Out) => format!("nothing on stdout{yet}"),
            Some(Stream::Err) => format!("nothing on stderr{yet}"),
        };
        canvas.text(body, 0, &text, theme.style(Role::Quiet));
        return;
    }
    let above_end = if state.focus == Focus::List { 0 } else { state.log.above_end };
    let last = lines.len().saturating_sub(above_end);
    draw_lines(state, log, &lines[..last.max(1)], body, canvas);
}

fn title(state: &State, log: &LogText) -> String {
    let streams = match state.log.only {
        None => "",
        Some(Stream::Out) => " · stdout",
        Some(Stream::Err) => " · stderr",
    };
    let end = log.attempt.ending.as_ref().map_or_else(String::new, |ending| {
        let code = ending.outcome.exit_code().map_or_else(String::new, |code| format!(" · exit code {code}"));
        format!("{code} · {}", short_span(ending.duration))
    });
    let job = if state.focus == Focus::Log { format!("{} · ", log.handle) } else { String::new() };
    format!("{job}log · attempt {} of {}{end}{streams}", log.attempt.number, log.attempts)
}

fn position(state: &State, log: &LogText) -> String {
    let found = state.log.find.as_ref().map_or_else(String::new, |text| format!("find {text} · "));
    let place = match (log.is_over, state.log.follows, state.log.above_end) {
        (false, true, _) => "following".to_owned(),
        (_, _, 0) => "end".to_owned(),
        (_, _, above) => format!("{above} lines below"),
    };
    format!("{found}{place}")
}

/// The last lines that fit, in order.
fn draw_lines(state: &State, log: &LogText, lines: &[&LogLine], body: Rect, canvas: &mut Canvas<'_>) {
    let mut rows: Vec<Line<'static>> = Vec::new();
    for line in lines.iter().rev() {
        let mut parts = rows_of(state, log, line, body.width, canvas);
        parts.reverse();
        rows.extend(parts);
        if rows.len() >= usize::from(body.height) {
            break;
        }
    }
    rows.truncate(body.height.into());
    for (line, row) in rows.iter().rev().zip(0..) {
        canvas.line(body, row, line);
    }
}

/// A line of output as rows of the screen: one, or as many as it needs if lines are wrapped.
fn rows_of(
    state: &State,
    log: &LogText,
    line: &LogLine,
    width: u16,
    canvas: &Canvas<'_>,
) -> Vec<Line<'static>> {
    let theme = canvas.theme;
    let base = match line.stream {
        Some(Stream::Out) => Style::new(),
        Some(Stream::Err) => theme.style(Role::ErrorOutput),
        None => theme.style(Role::Quiet),
    };
    let text = TerminalText::new(theme.colors != Colors::None).show(&line.bytes);
    let mut parts = spans(&text, base);
    if let Some(wanted) = &state.log.find
        && line.plain().to_lowercase().contains(wanted.as_str())
    {
        for part in &mut parts {
            part.style = part.style.add_modifier(Modifier::REVERSED);
        }
    }
    if state.log.has_times && line.stream.is_some() {
        let at = clock(state).time_of_line(log.began().saturating_add(line.at));
        parts.insert(0, Span::styled(format!("{at} "), theme.style(Role::Quiet)));
    }
    if state.log.wraps && state.focus == Focus::Log {
        wrapped(&parts, width.into())
    } else {
        vec![Line::from(parts)]
    }
}

fn wrapped(parts: &[Span<'static>], width: usize) -> Vec<Line<'static>> {
    let (mut rows, mut row, mut used) = (Vec::new(), Vec::new(), 0);
    for part in parts {
        let mut text = String::new();
        for character in part.content.chars() {
            let columns = unicode_width::UnicodeWidthChar::width(character).unwrap_or(0);
            if used + columns > width.max(2) {
                row.push(Span::styled(std::mem::take(&mut text), part.style));
                rows.push(Line::from(std::mem::take(&mut row)));
                used = 0;
            }
            used += columns;
            text.push(character);
        }
        row.push(Span::styled(text, part.style));
    }
    rows.push(Line::from(row));
    rows
}

fn draw_diff(state: &State, log: &LogText, body: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(lines) = &log.diff else {
        let text = if log.is_over {
            "there is no attempt before this one"
        } else {
            "it can be compared when it has ended"
        };
        canvas.text(body, 0, text, theme.style(Role::Quiet));
        return;
    };
    let last = lines.len().saturating_sub(state.log.above_end).max(1).min(lines.len());
    let first = last.saturating_sub(body.height.into());
    for (line, row) in lines[first..last].iter().zip(0..) {
        let (mark, text, style) = match line {
            DiffLine::Same(text) => (' ', text, Style::new()),
            DiffLine::Removed(text) => ('-', text, theme.style(Role::Error)),
            DiffLine::Added(text) => ('+', text, theme.style(Role::Good)),
        };
        canvas.text(body, row, &format!("{mark} {text}"), style);
    }
}
