//! The first screen: queues, and the newest failures. A large screen also has charts and a lane for each slot.

use ratatui::layout::Rect;

use super::canvas::{Canvas, cut, inset};
use super::chart;
use super::queues;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::{clock, short_span};
use crate::data::snapshot::{Rows, Snapshot};
use crate::layout::Layout;
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::job::Job;
use domain::metrics::histogram::WAIT_BOUNDS;
use domain::text::counts::grouped;
use domain::values::clock::Clock;
use ops::upcoming::Coming;
use store::FailedAttempt;

const COLUMNS: [Column; 5] = [
    Column::left("JOB", 0),
    Column::left("QUEUE", 2),
    Column::left("FAILED", 0),
    Column::left("COMMAND", 1),
    Column::left("ERROR", 0),
];
/// How many rows a chart has, with its title.
const CHART_ROWS: u16 = 6;

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let Some(snapshot) = state.snapshot() else {
        return;
    };
    let Rows::Overview { queues, failures, upcoming } = &snapshot.rows else {
        return;
    };
    let clock = clock(state);
    let mut free = layout.charts;
    if Layout::has_charts(state) {
        free = draw_charts(snapshot, free, canvas);
        lanes(snapshot, take_right(&mut free), canvas, &clock);
    }
    let parts = Layout {
        columns: row_of(free, 1),
        rows: Rect { y: free.y + 2, height: free.height.saturating_sub(2), ..free },
        ..*layout
    };
    canvas.rule(row_of(free, 0), "queues", &next(upcoming, &clock));
    queues::draw_rows(state, &parts, canvas, queues, Pointer::Elsewhere);
    draw_failures(state, layout, canvas, failures, &clock);
}

fn row_of(place: Rect, at: u16) -> Rect {
    Rect { y: place.y + at.min(place.height), height: u16::from(at < place.height), ..place }
}

/// The right half.
fn take_right(free: &mut Rect) -> Rect {
    let half = free.width / 2;
    let right = Rect { x: free.x + half + 1, width: free.width - half - 1, ..*free };
    free.width = half;
    right
}

fn next(upcoming: &[Coming], clock: &Clock) -> String {
    upcoming.first().map_or_else(String::new, |coming| {
        let name = coming.schedule.as_ref().map_or_else(
            || coming.number.map_or_else(|| coming.command.clone(), |number| format!("job {number}")),
            ToString::to_string,
        );
        format!("next: {} {}", cut(&domain::text::hostile::printable(&name), 24), clock.until(coming.at))
    })
}

fn draw_failures(
    state: &State,
    layout: &Layout,
    canvas: &mut Canvas<'_>,
    failures: &[FailedAttempt],
    clock: &Clock,
) {
    let theme = canvas.theme;
    canvas.rule(layout.title, "newest failures", "");
    if failures.is_empty() {
        canvas.text(layout.rows, 1, "  no attempt has failed", theme.style(Role::Quiet));
        return;
    }
    let window = table::window(state, layout, failures.len());
    let command_room = usize::from(layout.rows.width / 3).max(30);
    let row = |failed: &FailedAttempt| Row {
        mark: " ",
        sign: (theme.sign(failed.state), theme.state(failed.state)),
        cells: vec![
            Cell::new(failed.number.to_string()),
            Cell::styled(failed.queue.to_string(), theme.style(Role::Quiet)),
            Cell::new(clock.ago(failed.finished_at)),
            Cell::new(cut(&failed.command, command_room)),
            Cell::styled(failed.error.clone().unwrap_or_default(), theme.style(Role::Error)),
        ],
    };
    let shown: Vec<Row> = failures[window.clone()].iter().map(row).collect();
    table::draw(state, layout, canvas, &COLUMNS, Pointer::Rows(window.start), &shown);
}

/// Charts of the rate, the waits and the depth, side by side; returns the place below them.
fn draw_charts(snapshot: &Snapshot, place: Rect, canvas: &mut Canvas<'_>) -> Rect {
    let width = place.width / 3;
    let third = |at: u16| Rect { x: place.x + at * width, width: width - 1, height: CHART_ROWS, ..place };
    let points = usize::from(width).saturating_sub(3);
    let (history, now) = (&snapshot.history, snapshot.at);
    let ended = chart::values(history, now, points, |point| Some(chart::ended(point)));
    chart::draw(canvas, third(0), "attempts a minute", Role::Good, &ended, grouped);
    let waits = chart::values(history, now, points, |point| {
        let wait = point.activity.waits.quantile(0.95, &WAIT_BOUNDS)?;
        u64::try_from(wait.as_millis()).ok()
    });
    let unit = |most| short_span(std::time::Duration::from_millis(most));
    chart::draw(canvas, third(1), "95 % waited less than", Role::Scheduled, &waits, unit);
    let depth = chart::values(history, now, points, |point| point.depth.map(|depth| depth.pending));
    chart::draw(canvas, third(2), "pending jobs", Role::Accent, &depth, grouped);
    Rect { y: place.y + CHART_ROWS + 1, height: place.height.saturating_sub(CHART_ROWS + 1), ..place }
}

/// One line for each slot that runs a job.
fn lanes(snapshot: &Snapshot, place: Rect, canvas: &mut Canvas<'_>, clock: &Clock) {
    let slots: u32 = snapshot.status.workers.iter().map(|worker| worker.concurrency).sum();
    canvas.rule(row_of(place, 0), "slots", &format!("{} of {slots} busy", snapshot.running.len()));
    let theme = canvas.theme;
    for (job, row) in snapshot.running.iter().zip(1..place.height) {
        let Some(lease) = job.life.state.lease() else {
            continue;
        };
        let head = lane_head(job, &short_span(clock.now.since(lease.started_at)));
        canvas.text(inset(place, 1), row, theme.pick("▶", ">"), theme.style(Role::Running));
        canvas.text(inset(place, 3), row, &head, Theme::title());
        canvas.text(inset(place, 26), row, job.label(), ratatui::style::Style::new());
    }
    if snapshot.running.is_empty() {
        canvas.text(inset(place, 1), 1, "no job is running", theme.style(Role::Quiet));
    }
}

fn lane_head(job: &Job, time: &str) -> String {
    format!("{:<12} {time:>8}", cut(&job.handle(), 12))
}
