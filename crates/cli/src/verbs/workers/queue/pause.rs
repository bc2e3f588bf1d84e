//! `queuectl queue pause`

use sys::program::ExitCode;

use super::report::report_queue;
use crate::context::Context;
use crate::failure::Failure;
use domain::values::name::QueueName;
use ops::queues::pause;
use store::Pause;
use sys::process::user;

/// Pause a queue: no job starts; running jobs continue
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl queue pause mail
  queuectl queue pause mail --reason \"the server is down until noon\"")]
pub(super) struct Args {
    /// The queue
    #[arg(value_name = "QUEUE")]
    queue: QueueName,
    /// The reason, shown in `queue list` and `explain`
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: Option<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let why = Pause { by: user::name(), reason: args.reason.clone() };
    let changed = pause(context.store()?, &args.queue, &why)?;
    report_queue(context, &changed, "paused")
}
