//! `queuectl remove`

use std::process::ExitCode;

use super::bulk;
use super::bulk::{BulkArgs, Wording};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::WhichArgs;
use ops::jobs::change::Verb;

/// Forget jobs, with their history and output
///
/// A job that runs is left as it is (exit code 4), and so is one that unfinished jobs depend on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl remove job1
  queuectl remove job1 job2 --yes
  queuectl remove --state completed,cancelled --older-than 7d --dry-run")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    bulk: BulkArgs,
}

const REMOVE: Wording = Wording { verb: Verb::Remove, what: "remove", done: "removed", is_final: true };

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let which = args.which.resolve(context)?;
    bulk::run(context, which, &args.bulk, &REMOVE, |changed| format!("Job {} removed", changed.job.id))
}
