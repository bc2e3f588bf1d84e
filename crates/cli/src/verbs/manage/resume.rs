//! `queuectl resume`

use sys::program::ExitCode;

use super::change::Wording;
use super::pause::pause_or_resume;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::SelectionArgs;
use ops::jobs::change::Verb;

/// Resume paused jobs
///
/// The command and every process that it started continue. A running job that is not paused stays as it is; a job that is
/// not running cannot be resumed (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl resume job1
  queuectl resume --state paused")]
pub(crate) struct Args {
    /// Only show which jobs would be resumed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

const RESUME: Wording = Wording {
    verb: Verb::Resume,
    infinitive: "resume",
    participle: "resumed",
    is_final: false,
    sentence: |changed| format!("Job {} resumed", changed.job.handle()),
};

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    pause_or_resume(context, &args.selection, args.dry_run, &RESUME)
}
