//! `queuectl worker list`

use anstyle::{AnsiColor, Style};

use super::ForeignHome;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::table::{Cell, Table};
use domain::values::clock::Clock;
use domain::values::name::QueueName;
use ops::json::WorkerJson;
use ops::status::HOW_TO_START_A_WORKER;
use ops::worker::live::live_workers;
use store::{ServedJobs, Worker, WorkerState};

/// List live workers, oldest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker list
  queuectl worker list --json | jq -r '.[].pid'")]
pub(super) struct Args {
    #[command(flatten)]
    foreign_home: ForeignHome,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    args.foreign_home.apply(context)?;
    let store = context.store()?;
    let workers = live_workers(store)?;
    let clock = &context.clock(store.now()?);
    let if_empty = format!("no worker is running; {HOW_TO_START_A_WORKER}");
    context.print_list::<WorkerJson<'_>, _>(&workers, &if_empty, |workers| table(workers, clock))
}

/// A row for each worker, with the host if they have several.
pub(crate) fn table(workers: &[Worker], clock: &Clock) -> Table {
    let has_hosts = workers.windows(2).any(|pair| pair[0].host != pair[1].host);
    let host_head: &[&str] = if has_hosts { &["HOST"] } else { &[] };
    let others = ["STATE", "RUNNING", "PID", "STARTED", "HEARTBEAT", "QUEUES"];
    let mut table = Table::new(&[&["WORKER"], host_head, &others].concat())
        .with_numbers(&["RUNNING", "PID"])
        .with_optional_columns(&["PID", "STARTED", "HEARTBEAT"]);
    for worker in workers {
        let host = has_hosts.then(|| worker.host.as_str().into());
        let mut row: Vec<Cell> = vec![worker.id.as_str().into()];
        row.extend(host);
        row.extend([
            state(worker),
            format!("{}/{}", worker.running, worker.concurrency).into(),
            worker.pid.to_string().into(),
            clock.ago(worker.started_at).into(),
            clock.ago(worker.last_heartbeat).into(),
            served(&worker.served).into(),
        ]);
        table.row(row);
    }
    table
}

/// A worker without jobs is idle; for programs, it is in state running.
fn state(worker: &Worker) -> Cell {
    let name = worker.state.name();
    match worker.state {
        WorkerState::Running if worker.running == 0 => "idle".into(),
        WorkerState::Running => Cell::styled(name, AnsiColor::Green.on_default()),
        WorkerState::Draining => Cell::styled(name, AnsiColor::Yellow.on_default()),
        WorkerState::Stopped => Cell::styled(name, Style::new().dimmed()),
    }
}

fn served(served: &ServedJobs) -> String {
    match served {
        ServedJobs::All => "all".to_owned(),
        ServedJobs::InOrder(queues) => queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", "),
        ServedJobs::Batch(name) => format!("batch {name}"),
        ServedJobs::Job(job) => format!("job {job}"),
    }
}
