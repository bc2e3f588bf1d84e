//! `queuectl store migrate`

use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::report_change::report_change;
use ops::upkeep::migrate::{Fleet, Migration, migrate};
use store::Worker;

/// Bring the schema of the queue up to date, or create it
///
/// A SQLite file is brought up to date by every command. A schema in PostgreSQL is not: workers on other machines may run
/// an older queuectl that does not know the new schema. This command names such workers and changes nothing; stop them
/// first with `queuectl worker stop --everywhere`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store migrate
  queuectl store migrate --now")]
pub(super) struct Args {
    /// Do not wait for workers that run an older queuectl: they end their jobs, which return to the queue
    #[arg(long)]
    now: bool,
}

/// The most workers that one message names.
const MAX_NAMED: usize = 10;

#[derive(Serialize)]
struct MigrationJson {
    before: Option<i64>,
    schema_version: i64,
    changed: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let fleet = if args.now { Fleet::MayRun } else { Fleet::MustBeStopped };
    let (before, version, sentence) = match migrate(&context.location()?, fleet)? {
        Migration::WorkersLive(workers) => return Err(refuse(&workers)),
        Migration::Unchanged { version } => {
            (Some(version), version, format!("The schema has version {version}, the newest"))
        }
        Migration::Done { before: Some(before), version } => {
            (Some(before), version, format!("The schema was brought from version {before} to {version}"))
        }
        Migration::Done { before: None, version } => {
            (None, version, format!("The queue was created with schema version {version}"))
        }
    };
    let json = MigrationJson { before, schema_version: version, changed: before != Some(version) };
    report_change(context, &version.to_string(), &json, &sentence)
}

fn refuse(workers: &[Worker]) -> Failure {
    let message = format!("live workers run an older queuectl: {}", named(workers));
    Failure::new(Exit::Conflict, message).with_hint(
        "stop them first with that queuectl: `queuectl worker stop --everywhere`; --now does not wait for them",
    )
}

/// Names workers in a message.
pub(super) fn named(workers: &[Worker]) -> String {
    let name = |worker: &Worker| format!("{} (on {}, pid {})", worker.id, worker.host, worker.pid);
    let mut named: Vec<String> = workers.iter().take(MAX_NAMED).map(name).collect();
    if let more @ 1.. = workers.len().saturating_sub(MAX_NAMED) {
        named.push(format!("and {more} more"));
    }
    named.join(", ")
}
