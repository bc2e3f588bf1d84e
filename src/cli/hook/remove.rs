//! `queuectl hook remove`

use std::process::ExitCode;

use super::show::pending;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::named::{self, Named};
use crate::ops::hook::{HookJson, parse_name, remove};
use crate::sys::user;

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
    named::tell(context, &Named { name, json: HookJson::from(&hook), sentence })?;
    Ok(ExitCode::SUCCESS)
}
