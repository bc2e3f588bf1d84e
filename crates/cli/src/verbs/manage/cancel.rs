//! `queuectl cancel`

use std::process::ExitCode;

use super::bulk;
use super::bulk::{BulkArgs, Wording};
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::WhichArgs;
use crate::render::report_change::named;
use domain::job::life::StateName;
use ops::jobs::change::{ChangedJob, Verb};

/// End jobs that nobody wants any more
///
/// A job that waits is cancelled at once. For one that runs its worker is told to kill the command with everything that
/// it started; this waits for that, but for no longer than a second. Finished jobs are left as they are (exit code 4).
///
/// Jobs that depend on a cancelled one are cancelled too, unless they are to run in any case: they are named, and
/// with --json each job has a list `cancelled_dependents`. Where they are very many, the workers cancel the rest of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl cancel job1
  queuectl cancel job1 job2 --json
  queuectl cancel --queue mail --state ready,scheduled --dry-run
  queuectl cancel --command-like 'convert *' --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    bulk: BulkArgs,
}

pub(crate) const CANCEL: Wording =
    Wording { verb: Verb::Cancel, what: "cancel", done: "cancelled", is_final: false };

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let which = args.which.resolve(context)?;
    bulk::run(context, which, &args.bulk, &CANCEL, say)
}

fn say(changed: &ChangedJob) -> String {
    let id = &changed.job.id;
    match changed.state {
        StateName::Processing => format!("Job {id} is being ended by its worker"),
        StateName::Completed => format!("Job {id} completed before it could be ended"),
        StateName::Pending | StateName::Failed | StateName::Dead | StateName::Cancelled => {
            match &changed.dependents[..] {
                [] => format!("Job {id} cancelled"),
                dependents => format!("Job {id} cancelled, and {}", named(dependents)),
            }
        }
    }
}
