//! `queuectl hook remove`

use super::show::pending;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_change::report_change;
use ops::hook::{parse_name, remove};
use sys::process::user;

/// Remove a hook and its pending deliveries
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl hook remove notify-dead")]
pub(super) struct Args {
    /// The hook's name
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), Failure> {
    let name = parse_name(&args.name)?;
    let hook = remove(context.store()?, &name, &user::name())?;
    let name = hook.name.as_str();
    let sentence = match hook.pending {
        0 => format!("Hook {name} removed"),
        1 => format!("Hook {name} removed with 1 pending event"),
        count => format!("Hook {name} removed with {} pending events", pending(count)),
    };
    report_change(context, name, &hook, &sentence)
}
