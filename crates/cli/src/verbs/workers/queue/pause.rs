//! `queuectl queue pause`

use std::process::ExitCode;

use super::changed::tell;
use crate::context::Context;
use crate::failure::Failure;
use domain::values::name::QueueName;
use ops::queues::pause;
use store::Pause;
use sys::process::user;

/// Hold a queue back: its jobs wait, and what runs goes on
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue pause mail
  queuectl queue pause mail --reason \"the server is down until noon\"")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
    /// Why; shown to everybody who wonders
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let why = Pause { by: user::name(), reason: args.reason.clone() };
    let changed = pause(context.store()?, &args.queue, &why)?;
    tell(context, &changed, "is paused")
}
