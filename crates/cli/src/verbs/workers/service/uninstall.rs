//! `queuectl service uninstall`

use serde_json::json;

use super::WhichService;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use ops::worker::service::install::uninstall;

/// Stop the service after its running jobs; remove its unit
///
/// The queue and its jobs stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl service uninstall\n  queuectl service uninstall --name mail")]
pub(super) struct Args {
    #[command(flatten)]
    which: WhichService,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let (scope, name) = (args.which.scope(), args.which.name());
    args.which.note(context, "Waiting for running jobs; Ctrl-C ends the wait, not the stop")?;
    uninstall(scope, &name)?;
    let name = name.to_string();
    let json = json!({ "service": name, "scope": scope });
    report_change(context, &name, &json, &format!("Service {name} removed"))
}
