//! `queuectl store copy`

use std::ffi::OsString;

use super::super::import::with_bars;
use super::migrate::named;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::render::report_change::report_change;
use crate::render::text::jobs;
use crate::verbs::workers::worker::stop::stop_all;
use ops::home::location::{StoreAddress, locate_named};
use ops::home::open::open_existing;
use ops::upkeep::copy::{Copy, CopyResult, copy};
use serde::Serialize;
use sys::process::user;

/// Move the queue to another store: from a file to PostgreSQL, or back
///
/// Copies jobs with their numbers, history and output, settings, queues, schedules, hooks, batches and events into a store
/// without a queue. Then the old store is marked: commands that would change it say where the queue is now (exit code 5),
/// and it can still be read. Copying needs the old store without live workers, and keeps other commands from changing it.
///
/// If the command is interrupted, the old store stays in use. Run it again.
///
/// A store is a postgres:// URL or a path: a home directory, or a database file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl store copy ~/.queuectl postgres://queue@db.example.com/jobs
  queuectl store copy --wait postgres://queue@db.example.com/jobs /srv/queue")]
pub(super) struct Args {
    /// The store of the queue
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::AnyPath)]
    from: OsString,
    /// The new store, which must be empty
    #[arg(value_name = "TO", value_hint = clap::ValueHint::AnyPath)]
    to: OsString,
    /// Stop the workers of the old store first; they finish their running jobs
    #[arg(long)]
    wait: bool,
}

#[derive(Serialize)]
struct CopyJson<'a> {
    from: &'a str,
    to: &'a str,
    jobs: u64,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let home = context.location()?.home;
    let (from, to) = (locate_named(&args.from, &home)?, locate_named(&args.to, &home)?);
    if [&from, &to].iter().any(|location| has_password(&location.store)) {
        context.hint("other users can see the arguments of a command; keep the password in ~/.pgpass")?;
    }
    if args.wait {
        stop_all(open_existing(&from)?.as_ref(), None, context)?;
    }
    let request = Copy { from: &from, to: &to, by: &user::name() };
    let copied = match with_bars(context, ["reading", "copying"], |progress| copy(&request, progress))? {
        CopyResult::Done { jobs } => jobs,
        CopyResult::WorkersLive(workers) => {
            let message = format!("workers use the queue: {}", named(&workers));
            return Err(Failure::new(Exit::Conflict, message)
                .with_hint("--wait stops them first, after they finish their running jobs"));
        }
    };
    let (from, to) = (from.store.to_string(), to.store.to_string());
    let json = CopyJson { from: &from, to: &to, jobs: copied };
    report_change(context, &to, &json, &format!("The queue has moved to {to}, with {}", jobs(copied)))?;
    if !context.json {
        context.hint("name it from now on with --store, in QUEUECTL_STORE, or as `store` in config.toml")?;
    }
    Ok(())
}

fn has_password(store: &StoreAddress) -> bool {
    match store {
        StoreAddress::Sqlite(_) => false,
        StoreAddress::Postgres(address) => address.has_password(),
    }
}
