//! `queuectl remove`

use std::process::ExitCode;

use super::ask::confirm;
use super::changed::{change_ids, code_of, parse_ids};
use super::context::Context;
use super::failure::Failure;
use crate::ops::change::Verb;

/// Forget jobs, with their history and output
///
/// A job that runs is left as it is (exit code 4), and so is one that unfinished jobs depend on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl remove job1\n  queuectl remove job1 job2 --yes")]
pub(super) struct Args {
    /// Jobs to forget
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Do not ask before forgetting more than one job
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let ids = parse_ids(&args.ids)?;
    confirm(context, "remove", ids.len() as u64, args.yes)?;
    let store = context.store()?;
    let worst =
        change_ids(context, store, Verb::Remove, &ids, |changed| format!("Job {} removed", changed.job.id))?;
    Ok(code_of(worst))
}
