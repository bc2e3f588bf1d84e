//! The queues: what waits in them, and what limits them.

use ratatui::style::Style;

use super::canvas::Canvas;
use super::frame::age;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::{clock, short_span};
use crate::data::snapshot::Rows;
use crate::layout::Layout;
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::job::life::StateName;
use domain::metrics::histogram::WAIT_BOUNDS;
use domain::text::counts::grouped;
use domain::values::clock::Clock;
use store::{Queue, QueueMetrics};

const COLUMNS: [Column; 8] = [
    Column::left("QUEUE", 0),
    Column::right("WAITING", 0),
    Column::left("OLDEST", 2),
    Column::right("RUN", 0),
    Column::right("FAILED", 4),
    Column::right("DEAD", 3),
    Column::right("P95 WAIT", 5),
    Column::left("LIMIT", 0),
];

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let Some(Rows::Queues(queues)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    canvas.rule(layout.title, "queues", "the last hour");
    let window = table::window(state, layout, queues.len());
    draw_rows(state, layout, canvas, queues, Pointer::Rows(window.start));
}

pub(crate) fn draw_rows(
    state: &State,
    layout: &Layout,
    canvas: &mut Canvas<'_>,
    queues: &[QueueMetrics],
    pointer: Pointer,
) {
    let theme = canvas.theme;
    if queues.is_empty() {
        canvas.text(layout.rows, 1, "  no queue yet: the first job creates one", theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let first = match pointer {
        Pointer::Rows(first) => first,
        Pointer::Elsewhere => 0,
    };
    let fitting = usize::from(layout.rows.height);
    let shown: Vec<Row> =
        queues.iter().skip(first).take(fitting).map(|queue| row(theme, queue, &clock)).collect();
    table::draw(state, layout, canvas, &COLUMNS, pointer, &shown);
}

fn row(theme: Theme, metrics: &QueueMetrics, clock: &Clock) -> Row {
    let QueueMetrics { queue, activity, oldest_ready_at, .. } = metrics;
    let count = |state: StateName| queue.counts.get(&state).copied().unwrap_or(0);
    let number = |state: StateName| {
        let style = if count(state) == 0 { theme.style(Role::Quiet) } else { theme.state(state) };
        Cell::styled(grouped(count(state)), style)
    };
    let wait = activity.waits.quantile(0.95, &WAIT_BOUNDS).map_or_else(String::new, short_span);
    let (limit, is_paused) = limit(queue);
    // A sentence in yellow could hardly be read on white: the sign alone has the colour.
    let limit_style = if is_paused { Style::new() } else { theme.style(Role::Quiet) };
    Row {
        mark: " ",
        sign: if is_paused {
            (theme.pick("‖", "="), theme.style(Role::Warning))
        } else {
            (" ", Theme::title())
        },
        cells: vec![
            Cell::new(queue.name.to_string()),
            number(StateName::Pending),
            Cell::new(oldest_ready_at.map_or_else(String::new, |at| age(clock, at))),
            number(StateName::Processing),
            number(StateName::Failed),
            number(StateName::Dead),
            Cell::styled(wait, theme.style(Role::Quiet)),
            Cell::styled(limit, limit_style),
        ],
    }
}

/// What limits a queue, and whether it is paused.
fn limit(queue: &Queue) -> (String, bool) {
    if let Some((_, pause)) = &queue.paused {
        let reason = pause.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        return (format!("paused by {}{reason}", pause.by), true);
    }
    let concurrency = queue.concurrency.map(|limit| format!("{limit} at once"));
    let rate = queue.rate.as_ref().map(ToString::to_string);
    (concurrency.into_iter().chain(rate).collect::<Vec<_>>().join(", "), false)
}
