//! Dead jobs by what they died of.

use super::canvas::Canvas;
use super::frame::age;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::clock;
use crate::data::snapshot::Rows;
use crate::layout::Layout;
use crate::state::State;
use crate::theme::Role;
use domain::job::life::StateName;
use domain::text::counts::{grouped, jobs};

const COLUMNS: [Column; 5] = [
    Column::right("COUNT", 0),
    Column::left("FIRST", 2),
    Column::left("LAST", 1),
    Column::left("QUEUES", 3),
    Column::left("CAUSE", 0),
];

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let Some(Rows::Dead(causes)) = state.snapshot().map(|snapshot| &snapshot.rows) else {
        return;
    };
    let total = causes.iter().map(|cause| cause.count).sum();
    let word = if causes.len() == 1 { "cause" } else { "causes" };
    canvas.rule(layout.title, "dead jobs by cause", &format!("{}, {} {word}", jobs(total), causes.len()));
    if causes.is_empty() {
        canvas.text(layout.rows, 1, "  no job is dead", theme.style(Role::Quiet));
        return;
    }
    let clock = clock(state);
    let window = table::window(state, layout, causes.len());
    let quiet = theme.style(Role::Quiet);
    let row = |cause: &store::CauseSummary| {
        let queues: Vec<String> = cause.queues.keys().map(ToString::to_string).collect();
        Row {
            mark: " ",
            sign: (theme.sign(StateName::Dead), theme.state(StateName::Dead)),
            cells: vec![
                Cell::new(grouped(cause.count)),
                Cell::styled(age(&clock, cause.first_at), quiet),
                Cell::styled(age(&clock, cause.last_at), quiet),
                Cell::styled(queues.join(" "), quiet),
                Cell::new(cause.cause.message.clone()),
            ],
        }
    };
    let shown: Vec<Row> = causes[window.clone()].iter().map(row).collect();
    table::draw(state, layout, canvas, &COLUMNS, Pointer::Rows(window.start), &shown);
}
