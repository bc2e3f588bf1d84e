//! `queuectl remove`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::SelectionArgs;
use ops::jobs::change::Verb;

/// Delete jobs with their history and output
///
/// A running job cannot be removed (exit code 4), nor can a job that unfinished jobs depend on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl remove job1
  queuectl remove job1 job2 --yes
  queuectl remove --state completed,cancelled --older-than 7d --dry-run")]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
}

const REMOVE: Wording = Wording {
    verb: Verb::Remove,
    infinitive: "remove",
    participle: "removed",
    is_final: true,
    sentence: |changed| format!("Job {} removed", changed.job.handle()),
};

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let which = args.selection.resolve(context)?;
    change(context, which, &args.change, &REMOVE).map(code_of)
}
