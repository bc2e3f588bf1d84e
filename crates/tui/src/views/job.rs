//! One job: what it is, how its attempts went, and why it is where it is.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::canvas::{Canvas, cut, inset};
use super::times::{clock, ran, short_span};
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::job::life::when::when;
use domain::job::{Attempt, Job, JobRecord};
use domain::text::hostile::printable;
use domain::values::clock::Clock;
use domain::values::size::rough_size;

/// The rest of a longer command is left out.
const MAX_COMMAND_LINES: usize = 4;

pub(crate) fn draw(state: &State, place: Rect, canvas: &mut Canvas<'_>) {
    let record = state.snapshot.as_ref().and_then(|snapshot| snapshot.job.as_ref());
    let wanted = state.job();
    let Some(record) = record.filter(|record| Some(&record.job.id) == wanted.as_ref()) else {
        let text = match wanted {
            Some(_) if state.is_frozen => "  frozen; space continues",
            Some(_) => "  reading…",
            None => "  no job",
        };
        canvas.text(place, 1, text, canvas.theme.style(Role::Quiet));
        return;
    };
    let job = &record.job;
    let clock = clock(state);
    canvas.rule(Rect { height: 1, ..place }, &format!("job {}", job.handle()), &job.queue.to_string());
    let place = inset(place, 1);
    for (row, line) in (1..).zip(lines(canvas.theme, record, &clock, place.width)) {
        canvas.line(place, row, &line);
    }
}

fn lines(theme: Theme, record: &JobRecord, clock: &Clock, width: u16) -> Vec<Line<'static>> {
    let job = &record.job;
    let quiet = theme.style(Role::Quiet);
    let shown = |text: &str| printable(text).into_owned();
    let (sign, style) = theme.sign_of(job, clock.now);
    let state = job.life.state.name();
    let reason =
        job.life.state.reason().map_or_else(String::new, |reason| format!(": {}", reason.replace('_', " ")));
    let mut lines = vec![Line::from(vec![
        Span::styled(format!("{sign} {}{reason}", state.name()), style),
        Span::raw(format!("  {}  ", when(job, clock))),
        Span::styled(format!("try {} of {}", job.life.tries(), u64::from(job.life.max_retries) + 1), quiet),
    ])];
    lines.extend(wrapped(&shown(&job.command), width.into()).map(|part| Line::styled(part, Theme::title())));
    if let Some(error) = &job.latest.error {
        lines.push(Line::from(Span::styled(shown(error), theme.style(Role::Error))));
    }
    lines.push(timeline(theme, record, clock, width.into()));
    lines.push(Line::default());
    lines.extend(record.history.iter().rev().take(8).map(|attempt| attempt_line(theme, attempt, clock)));
    lines.push(Line::default());
    lines.extend(facts(job, record, clock).into_iter().map(|(name, value)| {
        Line::from(vec![Span::styled(format!("{name:<10}"), quiet), Span::raw(shown(&value))])
    }));
    lines
}

/// The beginning of a text, in a few lines of this width.
fn wrapped(text: &str, width: usize) -> impl Iterator<Item = String> {
    let mut rows = vec![String::new()];
    for character in text.chars() {
        let columns = character.width().unwrap_or(0);
        match rows.last_mut() {
            Some(row) if row.width() + columns <= width.max(2) => row.push(character),
            Some(_) | None => rows.push(character.to_string()),
        }
    }
    if rows.len() > MAX_COMMAND_LINES {
        rows.truncate(MAX_COMMAND_LINES);
        if let Some(last) = rows.last_mut() {
            *last = cut(&format!("{last}  "), width);
        }
    }
    rows.into_iter()
}

/// Waits and runs to scale: `├4 ms┤█1█──2s──█2█ ✕`.
fn timeline(theme: Theme, record: &JobRecord, clock: &Clock, width: usize) -> Line<'static> {
    let job = &record.job;
    let end = job.life.state.finished_at().unwrap_or(clock.now);
    let total = end.since(job.created_at).as_millis().max(1);
    let room = width.saturating_sub(4).min(100);
    let column = |at: domain::values::timestamp::Timestamp| {
        let part = at.since(job.created_at).as_millis().min(total);
        usize::try_from(part * room as u128 / total).unwrap_or(0)
    };
    let (bar, wait) = (theme.pick("█", "#"), theme.pick("─", "-"));
    let (mut spans, mut at) = (Vec::new(), 0);
    for attempt in &record.history {
        let begin = column(attempt.started_at).max(at);
        let ended = attempt.ending.as_ref().map_or(clock.now, |ending| ending.finished_at);
        let finish = column(ended).max(begin + 1).min(room);
        let style = if attempt.ending.as_ref().is_none_or(|ending| ending.error.is_none()) {
            theme.style(Role::Running)
        } else {
            theme.style(Role::Error)
        };
        spans.push(Span::styled(wait.repeat(begin.saturating_sub(at)), theme.style(Role::Quiet)));
        spans.push(Span::styled(bar.repeat(finish.saturating_sub(begin)), style));
        at = finish.max(at);
    }
    spans.push(Span::styled(wait.repeat(room.saturating_sub(at)), theme.style(Role::Quiet)));
    let (sign, style) = theme.sign_of(job, clock.now);
    spans.push(Span::styled(format!(" {sign}"), style));
    Line::from(spans)
}

fn attempt_line(theme: Theme, attempt: &Attempt, clock: &Clock) -> Line<'static> {
    let quiet = theme.style(Role::Quiet);
    let began = clock.time(attempt.started_at);
    let head = Span::raw(format!("attempt {:<3} {began}  ", attempt.number));
    let place = Span::styled(format!("  {} on {}", attempt.worker, printable(&attempt.host)), quiet);
    let Some(ending) = &attempt.ending else {
        let running = format!("runs for {}", clock.elapsed(attempt.started_at));
        return Line::from(vec![head, Span::styled(running, theme.style(Role::Running)), place]);
    };
    let style = if ending.error.is_none() { theme.style(Role::Good) } else { theme.style(Role::Error) };
    let cpu = ending.usage.cpu.map_or_else(String::new, |cpu| format!("  cpu {}", short_span(cpu)));
    let memory =
        ending.usage.max_rss_bytes.map_or_else(String::new, |bytes| format!("  {}", rough_size(bytes)));
    let outcome = ending.outcome.exit_code().map_or_else(
        || ending.outcome.name().replace('_', " "),
        |code| format!("{} ({code})", ending.outcome.name()),
    );
    Line::from(vec![
        head,
        Span::styled(outcome, style),
        Span::styled(format!("  {}{cpu}{memory}", short_span(ending.duration)), Style::new()),
        place,
    ])
}

fn facts(job: &Job, record: &JobRecord, clock: &Clock) -> Vec<(&'static str, String)> {
    let depends: Vec<String> = job.depends_on.iter().map(ToString::to_string).collect();
    let optional = [
        ("id", Some(job.id.to_string())),
        ("enqueued", Some(clock.moment(job.created_at))),
        ("ran", Some(ran(job, clock.now)).filter(|ran| !ran.is_empty())),
        ("name", job.name().map(str::to_owned)),
        ("batch", job.batch.as_ref().map(ToString::to_string)),
        ("schedule", record.schedule.as_ref().map(ToString::to_string)),
        ("tags", (!job.tags.is_empty()).then(|| job.tags.join(", "))),
        ("needs", (!depends.is_empty()).then(|| depends.join(", "))),
        ("priority", (job.priority != 0).then(|| job.priority.to_string())),
        ("timeout", job.timeout.map(short_span)),
        ("directory", job.cwd.clone()),
    ];
    let events = record.events.iter().rev().take(4);
    let events =
        events.map(|event| ("event", format!("{} by {} {}", event.event, event.by, clock.ago(event.at))));
    optional.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(events).collect()
}
