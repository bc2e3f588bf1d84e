//! What every screen has: the header, the counts, the problem, the tabs and the footer.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::canvas::{Canvas, columns, cut, inset};
use super::chart::rate_bars;
use super::times::clock;
use crate::layout::Layout;
use crate::state::{Focus, Marks, Mode, State};
use crate::tab::Tab;
use crate::theme::{Role, Theme};
use domain::job::life::StateName;
use domain::text::counts::grouped;
use domain::text::hostile::printable;
use domain::values::span::rough_span;
use ops::worker::live::slots_for_new_jobs;

/// Over a shorter time, one job would look like a burst.
const SHORTEST_RATE: Duration = Duration::from_secs(1);

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    header(state, layout, canvas);
    counts(state, layout, canvas);
    problem(state, layout, canvas);
    tabs(state, layout, canvas);
    footer(state, layout, canvas);
}

fn header(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let place = inset(layout.header, 1);
    let taken = canvas.text(place, 0, "queuectl", Theme::title());
    let dot = theme.pick("●", "*");
    let age = state.read_at.map(|at| at.elapsed());
    let (text, style) = match (&state.unreadable, state.is_frozen, age) {
        (Some(_), _, _) => (format!("{dot} no connection"), theme.style(Role::Error)),
        (None, true, _) => (format!("{dot} frozen"), theme.style(Role::Warning)),
        (None, false, None) => ("reading".to_owned(), theme.style(Role::Quiet)),
        (None, false, Some(_)) => (format!("{dot} live"), theme.style(Role::Good)),
    };
    let read_only = if state.fixed.is_read_only { "read-only  " } else { "" };
    let zone = if state.is_utc { "UTC" } else { "local" };
    let now = clock(state);
    let time = if state.snapshot.is_some() { now.time(now.now) } else { String::new() };
    let right = format!("  {time} {zone} ");
    canvas.right(layout.header, 0, &right, Style::new());
    let before =
        ratatui::layout::Rect { width: layout.header.width.saturating_sub(columns(&right)), ..layout.header };
    canvas.right(before, 0, &text, style);
    let before = ratatui::layout::Rect { width: before.width.saturating_sub(columns(&text)), ..before };
    canvas.right(before, 0, read_only, theme.style(Role::Warning));
    let place = inset(place, taken + 2);
    let room = place.width.saturating_sub(columns(&right) + columns(&text) + columns(read_only) + 1);
    let title = cut(&printable(&state.fixed.title), room.into());
    canvas.text(place, 0, &title, theme.style(Role::Quiet));
}

/// `1.2M`, `12,408`
fn short_count(count: u64) -> String {
    match count {
        0..1_000_000 => grouped(count),
        1_000_000..1_000_000_000 => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
        1_000_000_000.. => format!("{}.{}G", count / 1_000_000_000, count / 100_000_000 % 10),
    }
}

fn counts(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let Some(snapshot) = &state.snapshot else {
        return;
    };
    let theme = canvas.theme;
    let count = |state: StateName| snapshot.status.jobs.get(&state).copied().unwrap_or(0);
    let slots = slots_for_new_jobs(&snapshot.status.workers);
    let mut parts = Vec::new();
    for (name, state, of) in [
        ("pending", StateName::Pending, None),
        ("run", StateName::Processing, Some(slots)),
        ("failed", StateName::Failed, None),
        ("dead", StateName::Dead, None),
        ("done", StateName::Completed, None),
    ] {
        let number = short_count(count(state));
        let of = of.map_or_else(String::new, |of| format!("/{of}"));
        let style = if count(state) == 0 { theme.style(Role::Quiet) } else { theme.state(state) };
        parts.push((
            state,
            [
                Span::styled(format!("{name} "), theme.style(Role::Quiet)),
                Span::styled(format!("{number}{of}  "), style.patch(Theme::title())),
            ],
        ));
    }
    let place = inset(layout.counts, 1);
    for least in [StateName::Completed, StateName::Failed, StateName::Processing] {
        let needed: usize = parts.iter().flat_map(|(_, spans)| spans).map(Span::width).sum();
        // The last one ends with two spaces.
        if needed > usize::from(place.width) + 2 {
            parts.retain(|(state, _)| *state != least);
        }
    }
    let line: Line<'_> = parts.into_iter().flat_map(|(_, spans)| spans).collect();
    let taken = canvas.line(place, 0, &line);
    let rate = snapshot.rate.filter(|rate| rate.over >= SHORTEST_RATE).map_or(0.0, |rate| {
        let ended = u32::try_from(rate.completed + rate.failed).unwrap_or(u32::MAX);
        f64::from(ended) / rate.over.as_secs_f64().max(0.001)
    });
    let is_current = state.read_at.is_some_and(|at| at.elapsed().as_millis() < 2_500);
    let rate = format!("{:.0}/s ", if is_current { rate } else { 0.0 });
    if taken + columns(&rate) > place.width {
        return;
    }
    let room = place.width.saturating_sub(taken + columns(&rate) + 4);
    let bars = rate_bars(&snapshot.history, snapshot.at, room.min(20).into(), theme.is_ascii);
    let gap = if bars.is_empty() { "" } else { "  " };
    canvas.right(layout.counts, 0, &format!("{bars}{gap}{rate}"), theme.style(Role::Accent));
}

fn problem(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let place = inset(layout.problem, 1);
    if let Some(why) = &state.unreadable {
        canvas.text(place, 0, &format!("! {why}"), theme.style(Role::Error));
        return;
    }
    let Some(snapshot) = &state.snapshot else {
        return;
    };
    let problems = &snapshot.status.problems;
    if problems.is_empty() {
        return;
    }
    let at = state.problem % problems.len();
    let right = if problems.len() > 1 {
        format!("({} of {}, ! next) ", at + 1, problems.len())
    } else {
        String::new()
    };
    let room = usize::from(place.width.saturating_sub(columns(&right) + 1));
    let text = cut(&printable(&problems[at].message), room.saturating_sub(2));
    canvas.text(place, 0, "!", theme.style(Role::Warning).patch(Theme::title()));
    canvas.text(inset(place, 2), 0, &text, Style::new());
    canvas.right(layout.problem, 0, &right, theme.style(Role::Quiet));
}

fn tabs(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    for ((x, word), tab) in layout.tab_words().into_iter().zip(Tab::ALL) {
        let style = if tab == state.tab { Theme::chosen() } else { theme.style(Role::Quiet) };
        canvas.text(inset(layout.tabs, x), 0, &word, style);
    }
}

fn footer(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let mut place = inset(layout.footer, 1);
    if matches!(state.mode, Mode::Prompt(_)) {
        return;
    }
    if let Some(line) = &state.running {
        let room = if state.note.is_some() { place.width / 2 } else { place.width };
        let (before, after) = ("running ", "; Esc ends it ");
        let room = room.saturating_sub(columns(before) + columns(after));
        let running = format!("{before}{}{after}", cut(&printable(line), room.into()));
        if state.note.is_none() {
            canvas.text(place, 0, &running, theme.style(Role::Accent));
            return;
        }
        canvas.right(layout.footer, 0, &running, theme.style(Role::Quiet));
        place.width = place.width.saturating_sub(columns(&running));
    }
    if let Some(note) = &state.note {
        let role = if note.is_error { Role::Error } else { Role::Accent };
        let mark = if note.is_error { "! " } else { "" };
        let text = cut(&printable(&format!("{mark}{}", note.text)), place.width.into());
        canvas.text(place, 0, &text, theme.style(role));
        return;
    }
    let mut x = 0;
    for (key, what) in keys(state) {
        if x + columns(key) + columns(what) + 1 > place.width {
            break;
        }
        x += canvas.text(inset(place, x), 0, key, Theme::title()) + 1;
        x += canvas.text(inset(place, x), 0, what, theme.style(Role::Quiet)) + 2;
    }
}

/// The keys that matter most here.
fn keys(state: &State) -> Vec<(&'static str, &'static str)> {
    let changes: &[(&str, &str)] = match (state.fixed.is_read_only, &state.marks) {
        (true, _) => &[],
        (false, Marks::None) => &[("r", "retry"), ("c", "cancel")],
        (false, Marks::Some(_)) => &[("r", "retry marked"), ("c", "cancel marked")],
        (false, Marks::All) => &[("r", "retry all"), ("c", "cancel all")],
    };
    let has_room = Layout::is_wide(state) && !state.fixed.is_read_only;
    let all: &[(&str, &str)] = if has_room { &[("R", "retry all that match")] } else { &[] };
    let queue: &[(&str, &str)] =
        if state.fixed.is_read_only { &[] } else { &[("p", "pause"), ("+ -", "concurrency")] };
    let pause: &[(&str, &str)] = if state.fixed.is_read_only { &[] } else { &[("p", "pause")] };
    let parts: &[&[(&str, &str)]] = match (state.focus, state.tab) {
        (Focus::Job, _) => &[&[("Esc", "back"), ("l", "log"), ("w", "why"), ("g", "graph")], changes],
        (Focus::Log, _) => &[&[
            ("Esc", "back"),
            ("f", "follow"),
            ("/", "find"),
            ("o", "stream"),
            ("t", "times"),
            ("w", "wrap"),
            ("[ ]", "attempt"),
            ("d", "diff"),
            ("|", "pager"),
        ]],
        (Focus::List, Tab::Jobs) => &[
            &[("Enter", "open"), ("l", "log"), ("w", "why")],
            changes,
            all,
            &[("x", "mark"), ("/", "filter")],
        ],
        (Focus::List, Tab::Overview | Tab::Events) => {
            &[&[("Enter", "open"), ("l", "log"), ("w", "why"), ("/", "filter")]]
        }
        (Focus::List, Tab::Queues) => &[&[("Enter", "jobs")], queue, &[("/", "filter")]],
        (Focus::List, Tab::Schedules) => &[&[("Enter", "runs")], pause, &[("/", "filter")]],
        (Focus::List, Tab::Dead) if !state.fixed.is_read_only => {
            &[&[("Enter", "jobs"), ("l", "log"), ("R", "retry all"), ("D", "remove all"), ("/", "filter")]]
        }
        (Focus::List, Tab::Dead | Tab::Workers | Tab::Batches) => &[&[("Enter", "jobs"), ("/", "filter")]],
    };
    let everywhere = [(":", "do"), ("?", "keys"), ("q", "quit")];
    parts.iter().flat_map(|part| part.iter().copied()).chain(everywhere).collect()
}

/// `3m20s`, for ages in columns.
pub(crate) fn age(clock: &domain::values::clock::Clock, at: domain::values::timestamp::Timestamp) -> String {
    rough_span(clock.now.since(at))
}
