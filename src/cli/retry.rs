//! `queuectl retry`

use std::process::ExitCode;

use super::bulk::{self, BulkArgs, Wording};
use super::context::Context;
use super::failure::Failure;
use super::selection::WhichArgs;
use crate::ops::change::Verb;

/// Run jobs again, with fresh retries
///
/// Takes failed jobs (now instead of later), dead, cancelled and completed ones. Their history goes on. A job that is
/// pending or runs is left as it is (exit code 4). A selection without --state leaves completed jobs out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl retry job1
  queuectl retry job1 job2
  queuectl retry --state dead --queue mail --dry-run
  queuectl retry --state failed --older-than 1h --yes")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    bulk: BulkArgs,
}

pub(super) const RETRY: Wording =
    Wording { verb: Verb::Retry, what: "retry", done: "retried", is_final: false };

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let which = args.which.resolve(context)?;
    bulk::run(context, which, &args.bulk, &RETRY, |changed| {
        format!("Job {} is pending again", changed.job.id)
    })
}
