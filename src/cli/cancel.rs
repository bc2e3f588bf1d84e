//! `queuectl cancel`

use std::process::ExitCode;

use super::changed::{change_ids, code_of, parse_ids};
use super::context::Context;
use super::failure::Failure;
use crate::domain::life::StateName;
use crate::ops::change::{Changed, Verb};

/// End jobs that nobody wants any more
///
/// A job that waits is cancelled at once. For one that runs its worker is told to kill the command with everything that
/// it started; this waits for that, but for no longer than a second. Finished jobs are left as they are (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  queuectl cancel job1\n  queuectl cancel job1 job2 --json")]
pub(super) struct Args {
    /// Jobs to cancel
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let ids = parse_ids(&args.ids)?;
    let store = context.store()?;
    let worst = change_ids(context, store, Verb::Cancel, &ids, say)?;
    Ok(code_of(worst))
}

fn say(changed: &Changed) -> String {
    let id = &changed.job.id;
    match changed.state {
        StateName::Processing => format!("Job {id} is being ended by its worker"),
        StateName::Completed => format!("Job {id} completed before it could be ended"),
        StateName::Pending | StateName::Failed | StateName::Dead | StateName::Cancelled => {
            format!("Job {id} cancelled")
        }
    }
}
