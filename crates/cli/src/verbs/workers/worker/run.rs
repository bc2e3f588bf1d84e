//! `queuectl worker run`

use std::process::ExitCode;

use super::pool::{PoolArguments, PoolFlags};
use crate::context::Context;
use crate::failure::{Exit, Failure};

use ops::home::location;
use ops::jobs::inside::CallingJob;

/// Run workers in the foreground, for systemd, containers and CI
///
/// SIGTERM, SIGINT (Ctrl-C) and SIGHUP let running jobs finish and then end the workers; a second SIGTERM or SIGINT
/// ends the jobs too and gives them back to the queue, a third does so without any grace.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl worker run
  queuectl worker run --concurrency 4 --until-empty")]
pub(super) struct Args {
    #[command(flatten)]
    flags: PoolFlags,
    /// End when no job of the served queues is ready, running or waiting for a retry
    #[arg(long)]
    until_empty: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.until_empty {
        refuse_inside(args, context)?;
    }
    context.store()?.tidy();
    let location = context.location()?.absolute()?;
    let pool = PoolArguments {
        flags: args.flags.clone(),
        job: None,
        until_empty: args.until_empty,
        echo: !context.quiet,
    };
    let open = || location::reopen(&location.store);
    engine::run_supervisor(&pool.into_pool(&location), &open, &mut |_| {})?;
    Ok(ExitCode::SUCCESS)
}

/// Workers inside a job would wait until the queue of that job is empty, and the job until they have ended.
fn refuse_inside(args: &Args, context: &Context) -> Result<(), Failure> {
    let queues = &args.flags.queues;
    let Some(inside) = CallingJob::find(context.store()?)? else {
        return Ok(());
    };
    let (id, queue) = (&inside.job.id, &inside.job.queue);
    if !queues.is_empty() && !queues.contains(queue) {
        return Ok(());
    }
    let message = format!("queue `{queue}` is empty only after job `{id}`, which calls this, has ended");
    Err(Failure::new(Exit::Conflict, message).with_hint(
        "`queuectl run` and `queuectl wait` inside a job see to it that what they wait for can run",
    ))
}
