//! The workers and what they run.

use super::canvas::Canvas;
use super::frame::age;
use super::table::{self, Cell, Column, Pointer, Row};
use super::times::clock;
use crate::data::snapshot::Snapshot;
use crate::layout::Layout;
use crate::state::State;
use crate::theme::{Role, Theme};
use domain::job::Job;
use domain::values::clock::Clock;
use store::{Worker, WorkerState};

const COLUMNS: [Column; 6] = [
    Column::left("WORKER", 0),
    Column::left("HOST", 3),
    Column::right("PID", 4),
    Column::right("SLOTS", 0),
    Column::left("UP", 2),
    Column::left("RUNS", 0),
];

pub(crate) fn draw(state: &State, layout: &Layout, canvas: &mut Canvas<'_>) {
    let Some(snapshot) = state.snapshot() else {
        return;
    };
    let workers = &snapshot.status.workers;
    canvas.rule(layout.title, "workers", "");
    if workers.is_empty() {
        let hint = "  no worker runs: `queuectl worker start` starts one";
        canvas.text(layout.rows, 1, hint, canvas.theme.style(Role::Quiet));
        return;
    }
    let (theme, clock) = (canvas.theme, clock(state));
    let window = table::window(state, layout, workers.len());
    let shown: Vec<Row> =
        workers[window.clone()].iter().map(|worker| row(theme, snapshot, worker, &clock)).collect();
    table::draw(state, layout, canvas, &COLUMNS, Pointer::Rows(window.start), &shown);
}

fn row(theme: Theme, snapshot: &Snapshot, worker: &Worker, clock: &Clock) -> Row {
    let is_its = |job: &&Job| job.life.state.lease().is_some_and(|lease| lease.worker == worker.id);
    let runs: Vec<String> = snapshot.running.iter().filter(is_its).map(running).collect();
    let (sign, role) = match worker.state {
        WorkerState::Running => (theme.pick("●", "*"), Role::Good),
        WorkerState::Draining => (theme.pick("◐", "~"), Role::Warning),
        WorkerState::Stopped => (theme.pick("○", "."), Role::Quiet),
    };
    let health = worker.health.as_ref().map(|health| format!("! {health}"));
    let quiet = theme.style(Role::Quiet);
    Row {
        mark: " ",
        sign: (sign, theme.style(role)),
        cells: vec![
            Cell::new(worker.id.to_string()),
            Cell::styled(worker.host.clone(), quiet),
            Cell::styled(worker.pid.to_string(), quiet),
            Cell::new(format!("{}/{}", worker.running, worker.concurrency)),
            Cell::styled(age(clock, worker.started_at), quiet),
            Cell::new(health.unwrap_or_else(|| runs.join(", "))),
        ],
    }
}

fn running(job: &Job) -> String {
    format!("{} {}", job.handle(), job.label())
}
