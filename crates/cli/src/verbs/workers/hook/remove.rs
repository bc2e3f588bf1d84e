//! `queuectl hook remove`

use std::process::ExitCode;

use super::show::pending;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::report_name;
use crate::render::report_name::Named;
use ops::hook::{HookJson, parse_name, remove};
use sys::process::user;

/// Forget a hook, and what it was still to be told
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  queuectl hook remove mourn")]
pub(super) struct Args {
    /// The hook
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let name = parse_name(&args.name)?;
    let hook = remove(context.store()?, &name, &user::name())?;
    let name = hook.name.as_str();
    let sentence = match hook.pending {
        0 => format!("Hook {name} removed"),
        count => format!("Hook {name} removed; it was still to be told of {} events", pending(count)),
    };
    report_name::tell(context, &Named { name, json: HookJson::from(&hook), sentence })?;
    Ok(ExitCode::SUCCESS)
}
