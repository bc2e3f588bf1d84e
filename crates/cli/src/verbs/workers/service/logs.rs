//! `queuectl service logs`

use std::os::unix::process::CommandExt;

use super::WhichService;
use crate::context::Context;
use crate::failure::Failure;
use ops::worker::service::ServiceError;
use ops::worker::service::state::state;
use ops::worker::service::systemd::log_command;

/// Show what the workers of the service have logged
///
/// Shows the journal of systemd. The file worker.log in the home has the same lines.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl service logs\n  queuectl service logs -f")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichService,
    /// Wait for new lines
    #[arg(short, long)]
    follow: bool,
    /// Number of lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    tail: u64,
}

/// journalctl takes the place of this process, so that its exit code, its output and Ctrl-C are its own.
pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let (scope, name) = (args.which.scope(), args.which.name());
    state(scope, &name)?;
    let mut command = log_command(scope, &name, args.tail, args.follow);
    if context.json {
        command.args(["--output", "json"]);
    }
    let source = command.exec();
    Err(ServiceError::CannotRun { command: "journalctl".to_owned(), source }.into())
}
