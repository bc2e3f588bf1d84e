//! `queuectl hook remove`

use std::io::Write;
use std::process::ExitCode;

use super::show::pending;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
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
    if context.json {
        context.print_json(&HookJson::from(&hook))?;
    } else if !context.quiet && context.person_reads {
        let mut out = context.out();
        match hook.pending {
            0 => writeln!(out, "Hook {name} removed")?,
            count => {
                writeln!(out, "Hook {name} removed; it was still to be told of {} events", pending(count))?;
            }
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
