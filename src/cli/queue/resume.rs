//! `queuectl queue resume`

use std::process::ExitCode;

use super::changed::tell;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::domain::name::QueueName;
use crate::ops::queues::resume;
use crate::sys::user;

/// Let a paused queue go on
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl queue resume mail")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let changed = resume(context.store()?, &args.queue, &user::name())?;
    tell(context, &changed, "goes on")
}
