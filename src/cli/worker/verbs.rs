//! The verbs of `queuectl worker`.

use std::process::ExitCode;

use super::list;
use crate::cli::context::Context;
use crate::cli::failure::Failure;

/// The processes that run jobs
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl worker list")]
pub(in crate::cli) struct Args {
    #[command(subcommand)]
    verb: WorkerVerb,
}

#[derive(Debug, clap::Subcommand)]
enum WorkerVerb {
    List(list::Args),
}

pub(in crate::cli) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    match &args.verb {
        WorkerVerb::List(args) => list::run(args, context),
    }
}
