//! The list of jobs.

use ratatui::style::Style;

use super::canvas::Canvas;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::{clock, ran};
use crate::data::snapshot::{JobRows, Rows};
use crate::layout::Layout;
use crate::state::{Marks, State};
use crate::theme::Role;
use domain::job::Job;
use domain::job::life::when::when;
use domain::text::counts::{grouped, jobs};
use domain::values::clock::Clock;
use ops::jobs::list::order_names;
use store::Order;

const COLUMNS: [Column; 6] = [
    Column::left("JOB", 0),
    Column::left("QUEUE", 2),
    Column::right("TRY", 3),
    Column::left("WHEN", 1),
    Column::right("RAN", 4),
    Column::left("COMMAND", 0),
];

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(Rows::Jobs(rows)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    canvas.rule(layout.title, &title(state), &summary(state, rows));
    if let Some(error) = &rows.error {
        canvas.text(layout.rows, 0, &format!("  {error}"), theme.style(Role::Error));
        return;
    }
    if rows.jobs.is_empty() {
        let hint = if state.filter.is_empty() {
            "  no jobs yet: `queuectl enqueue -- COMMAND` adds one"
        } else {
            "  no job matches; Esc shows all"
        };
        canvas.text(layout.rows, 1, hint, theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let window = table::window(state, layout, rows.jobs.len());
    let shown: Vec<Row> =
        rows.jobs[window.clone()].iter().map(|job| row(state, canvas, job, &clock)).collect();
    table::draw(state, layout, canvas, &COLUMNS, Pointer::Rows(window.start), &shown);
}

/// The filter; an order that has only some of its jobs says which.
fn title(state: &State) -> String {
    let filter = if state.filter.is_empty() { "all jobs" } else { state.filter.text() };
    let only = match (state.order, state.order.phase()) {
        (Order::LastFailed, _) => ", only with a failed attempt".to_owned(),
        (_, Some(phase)) if state.filter.phases().is_empty() => format!(", only {}", phase.name()),
        (_, Some(_) | None) => String::new(),
    };
    format!("{filter}{only}")
}

fn summary(state: &State, rows: &JobRows) -> String {
    if state.is_searching() {
        return "searching…".to_owned();
    }
    let at_least = if rows.is_exact { "" } else { "at least " };
    let marked = match &state.marks {
        Marks::None => String::new(),
        Marks::Some(marked) => format!("{} marked · ", grouped(marked.len() as u64)),
        Marks::All => "all marked · ".to_owned(),
    };
    let searched =
        rows.searched.map_or_else(String::new, |searched| format!(" · searched {}", grouped(searched)));
    let order = if state.filter.is_empty() && state.order == Order::Newest {
        "most urgent first"
    } else {
        order_names()[Order::ALL.iter().position(|order| *order == state.order).unwrap_or(0)]
    };
    format!("{marked}{at_least}{}{searched} · {order}", jobs(rows.count))
}

fn row(state: &State, canvas: &Canvas<'_>, job: &Job, clock: &Clock) -> Row {
    let theme = canvas.theme;
    let is_marked = match &state.marks {
        Marks::None => false,
        Marks::Some(marked) => marked.contains(&job.id),
        Marks::All => true,
    };
    let tries = format!("{}/{}", job.life.tries(), u64::from(job.life.max_retries) + 1);
    let quiet = theme.style(Role::Quiet);
    Row {
        mark: if is_marked { "+" } else { " " },
        sign: theme.sign_of(job, clock.now),
        cells: vec![
            Cell::new(job.handle()),
            Cell::styled(job.queue.to_string(), quiet),
            Cell::styled(tries, quiet),
            Cell::styled(when(job, clock), Style::new()),
            Cell::styled(ran(job, clock.now), quiet),
            Cell::new(job.label()),
        ],
    }
}
