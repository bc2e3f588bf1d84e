//! `queuectl store migrate`

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::report_change::report_change;
use crate::verbs::workers::worker::stop::stop_all;
use domain::values::span::{format_span, parse_span};
use ops::upkeep::migrate::{Migration, migrate, store_with_older_workers};
use ops::worker::live::live_workers;
use store::{Store, Worker};

/// Bring the schema of the queue up to date, or create it
///
/// A SQLite file is brought up to date by every command. A schema in PostgreSQL is not: workers on other machines may run
/// an older queuectl. If they could not work with the new schema, this command stops them first, as `queuectl worker stop
/// --everywhere` does, and waits until they have finished their running jobs. Start workers of the new version afterwards.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store migrate
  queuectl store migrate --timeout 1h
  queuectl store migrate --now")]
pub(super) struct Args {
    /// Do not wait for workers that run an older queuectl: they end their jobs, which return to the queue
    #[arg(long)]
    now: bool,
    /// Give up after this long; nothing is changed then, and the exit code is 124
    #[arg(short, long, value_name = "DURATION", value_parser = parse_span, default_value = "10m", conflicts_with = "now")]
    timeout: Duration,
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
    let location = context.location()?;
    if !args.now
        && let Some(store) = store_with_older_workers(&location)?
    {
        stop_workers(store.as_ref(), args.timeout, context)?;
    }
    let (before, version, sentence) = match migrate(&location)? {
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

/// Also stops workers that are started meanwhile.
fn stop_workers(store: &dyn Store, timeout: Duration, context: &Context) -> Result<(), Failure> {
    let end = Instant::now().checked_add(timeout);
    while !live_workers(store)?.is_empty() {
        let late = stop_all(store, end, context)?;
        if !late.is_empty() || end.is_some_and(|end| Instant::now() >= end) {
            return Err(give_up(&live_workers(store)?, timeout));
        }
    }
    Ok(())
}

fn give_up(late: &[Worker], timeout: Duration) -> Failure {
    let message = format!(
        "the schema was not changed: workers with an older queuectl still run after {}: {}",
        format_span(timeout),
        named(late)
    );
    Failure::new(Exit::TimedOut, message).with_hint(
        "they claim no more jobs and stop when theirs have finished: try again later, with a longer --timeout, or with --now",
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
