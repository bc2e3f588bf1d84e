//! `queuectl queue resume`

use sys::program::ExitCode;

use super::report::report_queue;
use crate::context::Context;
use crate::failure::Failure;
use domain::values::name::QueueName;
use ops::queues::resume;
use sys::process::user;

/// Resume a paused queue
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl queue resume mail")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let changed = resume(context.store()?, &args.queue, &user::name())?;
    report_queue(context, &changed, "resumed")
}
