//! The verbs of `queuectl queue`.

use sys::program::ExitCode;

use super::{list, pause, resume, set};
use crate::context::Context;
use crate::failure::Failure;

/// Pause, resume and limit queues
///
/// A queue is a named lane of jobs with its own limits. It is created when it is first used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue list
  queuectl queue set mail --concurrency 2 --rate 100/h
  queuectl queue pause mail --reason \"the server is down\"
  queuectl queue resume mail")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: QueueVerb,
}

#[derive(Debug, clap::Subcommand)]
enum QueueVerb {
    List(list::Args),
    Pause(pause::Args),
    Resume(resume::Args),
    Set(set::Args),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    match &args.verb {
        QueueVerb::List(args) => list::run(args, context),
        QueueVerb::Pause(args) => pause::run(args, context),
        QueueVerb::Resume(args) => resume::run(args, context),
        QueueVerb::Set(args) => set::run(args, context),
    }
}
