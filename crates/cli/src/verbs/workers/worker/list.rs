//! `queuectl worker list`

use anstyle::{AnsiColor, Style};

use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use crate::render::text::ago;
use domain::values::name::QueueName;
use domain::values::timestamp::Timestamp;
use ops::json::WorkerJson;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::live_workers;
use store::{ServedJobs, Worker, WorkerState};

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    let store = context.store()?;
    let workers = live_workers(store)?;
    let now = store.now()?;
    let if_empty = format!("no worker is running; {HOW_TO_START_A_WORKER}");
    context.print_list::<WorkerJson<'_>, _>(&workers, &if_empty, |workers| table(workers, now))
}

/// A row for each worker.
pub(crate) fn table(workers: &[Worker], now: Timestamp) -> Table {
    let mut table = Table::new(&["WORKER", "STATE", "RUNNING", "PID", "STARTED", "HEARTBEAT", "QUEUES"])
        .with_numbers(&["RUNNING", "PID"])
        .with_optional_columns(&["PID", "STARTED", "HEARTBEAT"]);
    for worker in workers {
        table.row(vec![
            worker.id.as_str().into(),
            Cell::styled(worker.state.name(), style(worker.state)),
            format!("{}/{}", worker.running, worker.concurrency).into(),
            worker.pid.to_string().into(),
            ago(worker.started_at, now).into(),
            ago(worker.last_heartbeat, now).into(),
            served(&worker.served).into(),
        ]);
    }
    table
}

fn style(state: WorkerState) -> Style {
    match state {
        WorkerState::Running => AnsiColor::Green.on_default(),
        WorkerState::Draining => AnsiColor::Yellow.on_default(),
        WorkerState::Stopped => Style::new().dimmed(),
    }
}

fn served(served: &ServedJobs) -> String {
    match served {
        ServedJobs::All => "all".to_owned(),
        ServedJobs::InOrder(queues) => queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", "),
        ServedJobs::Job(job) => format!("job {job}"),
    }
}
