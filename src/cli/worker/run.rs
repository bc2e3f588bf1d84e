//! `queuectl worker run`

use std::process::ExitCode;

use super::pool::{PoolArguments, PoolFlags};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::engine;
use crate::ops::location;

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
    context.store()?.tidy();
    let location = context.location()?.absolute()?;
    let pool = PoolArguments {
        flags: args.flags.clone(),
        job: None,
        until_empty: args.until_empty,
        echo: !context.quiet,
    };
    let open = || location::reopen(&location.store);
    engine::run_guardian(&pool.into_pool(&location), &open, &mut |_| {})?;
    Ok(ExitCode::SUCCESS)
}
