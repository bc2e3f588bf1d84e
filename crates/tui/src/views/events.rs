//! What people and workers did, newest first.

use super::canvas::Canvas;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::clock;
use crate::data::snapshot::Rows;
use crate::layout::Layout;
use crate::state::State;
use crate::theme::Role;
use ops::events::{about, title};
use store::Event;

const COLUMNS: [Column; 4] =
    [Column::left("TIME", 0), Column::left("EVENT", 0), Column::left("BY", 1), Column::left("ABOUT", 0)];

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(Rows::Events(events)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    canvas.rule(layout.title, "events", "newest first");
    if events.is_empty() {
        canvas.text(layout.rows, 1, "  nothing happened yet", theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let window = table::window(state, layout, events.len());
    let row = |event: &Event| {
        Row::new(vec![
            Cell::styled(clock.time(event.at), theme.style(Role::Quiet)),
            Cell::new(title(event)),
            Cell::styled(event.by.clone(), theme.style(Role::Accent)),
            Cell::new(about(event)),
        ])
    };
    let shown: Vec<Row> = events[window.clone()].iter().map(row).collect();
    table::draw(state, layout, canvas, &COLUMNS, Pointer::Rows(window.start), &shown);
}
