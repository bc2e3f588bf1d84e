//! `queuectl service restart`

use serde_json::json;

use super::WhichService;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use ops::worker::service::install::restart;

/// Restart the service when its running jobs have finished
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl service restart\n  queuectl service restart --name mail")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichService,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let (scope, name) = (args.which.scope(), args.which.name());
    args.which.note(context, "Waiting for running jobs; Ctrl-C ends the wait, not the restart")?;
    restart(scope, &name)?;
    let name = name.to_string();
    let json = json!({ "service": name, "scope": scope });
    report_change(context, &name, &json, &format!("Service {name} restarted"))
}
