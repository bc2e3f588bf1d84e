//! Schedules, and batches.

use super::canvas::Canvas;
use super::frame::age;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::clock;
use crate::data::snapshot::Rows;
use crate::layout::Layout;
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::job::life::StateName;
use domain::schedule::{Run, Schedule};
use domain::text::counts::grouped;
use domain::values::clock::Clock;
use store::Batch;

const SCHEDULE_COLUMNS: [Column; 5] = [
    Column::left("SCHEDULE", 0),
    Column::left("WHEN", 2),
    Column::left("NEXT", 0),
    Column::left("LAST", 1),
    Column::left("COMMAND", 0),
];

const BATCH_COLUMNS: [Column; 6] = [
    Column::left("BATCH", 0),
    Column::left("STARTED", 2),
    Column::right("DONE", 0),
    Column::right("FAILED", 1),
    Column::right("RUN", 3),
    Column::left("PROGRESS", 0),
];

/// How wide the bar of a batch is.
const BAR: u64 = 20;

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(Rows::Schedules(schedules)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    canvas.rule(layout.title, "schedules", "");
    if schedules.is_empty() {
        let hint = "  no schedule yet: `queuectl schedule add NAME --cron '0 3 * * *' -- COMMAND` adds one";
        canvas.text(layout.rows, 1, hint, theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let window = table::window(state, layout, schedules.len());
    let shown: Vec<Row> =
        schedules[window.clone()].iter().map(|found| schedule_row(theme, found, &clock)).collect();
    table::draw(state, layout, canvas, &SCHEDULE_COLUMNS, Pointer::Rows(window.start), &shown);
}

fn schedule_row(theme: Theme, (schedule, run): &(Schedule, Option<Run>), clock: &Clock) -> Row {
    let last = run.as_ref().map_or_else(String::new, |run| {
        let at = run.scheduled_for.map_or_else(String::new, |at| format!(" {} ago", age(clock, at)));
        format!("{}{at}", run.state.name())
    });
    let (next, role) = match (&schedule.paused, schedule.next_at) {
        (Some(_), _) => ("paused".to_owned(), Role::Warning),
        (None, Some(at)) => (clock.until(at), Role::Scheduled),
        (None, None) => ("never".to_owned(), Role::Quiet),
    };
    let state = run.as_ref().map(|run| run.state);
    Row {
        mark: " ",
        sign: state.map_or((" ", Theme::title()), |state| (theme.sign(state), theme.state(state))),
        cells: vec![
            Cell::new(schedule.name.to_string()),
            Cell::styled(schedule.when.to_string(), theme.style(Role::Quiet)),
            Cell::styled(next, theme.style(role)),
            Cell::styled(last, state.map_or(Theme::title(), |state| theme.state(state))),
            Cell::new(schedule.job.command.clone().unwrap_or_default()),
        ],
    }
}

pub(crate) fn draw_batches(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(Rows::Batches(batches)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    canvas.rule(layout.title, "batches", "newest first");
    if batches.is_empty() {
        let hint = "  no batch yet: `queuectl enqueue --batch NAME …` begins one";
        canvas.text(layout.rows, 1, hint, theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let window = table::window(state, layout, batches.len());
    let shown: Vec<Row> =
        batches[window.clone()].iter().map(|batch| batch_row(theme, batch, &clock)).collect();
    table::draw(state, layout, canvas, &BATCH_COLUMNS, Pointer::Rows(window.start), &shown);
}

fn batch_row(theme: Theme, batch: &Batch, clock: &Clock) -> Row {
    let (total, finished) = (batch.total(), batch.finished());
    let filled = usize::try_from(finished * BAR / total.max(1)).unwrap_or(0);
    let empty = usize::try_from(BAR).unwrap_or(0) - filled;
    let bar = format!("{}{}", theme.pick("█", "#").repeat(filled), theme.pick("░", ".").repeat(empty));
    let percent = finished * 100 / total.max(1);
    let is_over = batch.finished_at.is_some();
    let failed = batch.unsuccessful();
    let role = if failed > 0 { Role::Error } else { Role::Quiet };
    let running = batch.counts.get(&StateName::Processing).copied().unwrap_or(0);
    let state = if !is_over {
        StateName::Processing
    } else if failed > 0 {
        StateName::Dead
    } else {
        StateName::Completed
    };
    Row {
        mark: " ",
        sign: (theme.sign(state), theme.state(state)),
        cells: vec![
            Cell::new(batch.name.to_string()),
            Cell::styled(format!("{} ago", age(clock, batch.created_at)), theme.style(Role::Quiet)),
            Cell::new(format!("{}/{}", grouped(finished), grouped(total))),
            Cell::styled(grouped(failed), theme.style(role)),
            Cell::styled(grouped(running), theme.style(Role::Quiet)),
            Cell::styled(format!("{bar} {percent} %"), theme.style(Role::Accent)),
        ],
    }
}
