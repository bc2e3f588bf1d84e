//! `queuectl retry`

use std::process::ExitCode;

use super::changed::{change_ids, code_of, parse_ids};
use super::context::Context;
use super::failure::Failure;
use crate::ops::change::Verb;

/// Run jobs again, with fresh retries
///
/// Takes failed jobs (now instead of later), dead, cancelled and completed ones. Their history goes on. A job that is
/// pending or runs is left as it is (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl retry job1\n  queuectl retry job1 job2")]
pub(super) struct Args {
    /// Jobs to run again
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let ids = parse_ids(&args.ids)?;
    let store = context.store()?;
    let worst = change_ids(context, store, Verb::Retry, &ids, |changed| {
        format!("Job {} is pending again", changed.job.id)
    })?;
    Ok(code_of(worst))
}
