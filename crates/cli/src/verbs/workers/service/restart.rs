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
    context.note("Waiting for running jobs; Ctrl-C ends the wait, not the restart")?;
    restart(scope, &name)?;
    let (name, json) = (name.to_string(), json!({ "service": name.as_str(), "scope": scope }));
    report_change(context, &name, &json, &format!("Service {name} restarted"))
}
