//! The verbs of `queuectl batch`.

use std::process::ExitCode;

use super::list::{hint_at_unsuccessful, list, show};
use super::wait;
use super::wait::WaitArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::verbs::manage::bulk::{BulkArgs, change_kind};
use crate::verbs::manage::cancel::CANCEL;
use domain::values::name::BatchName;
use ops::jobs::batch::find;
use ops::jobs::bulk::default_phases;
use store::JobFilter;

/// Jobs that were enqueued together under a name
///
/// `enqueue --batch NAME` puts jobs into a batch, which is there from its first job until its last one is removed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl batch list
  queuectl batch wait nightly --timeout 1h
  queuectl batch cancel nightly --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: BatchVerb,
}

#[derive(Debug, clap::Subcommand)]
enum BatchVerb {
    /// Show batches, the newest first
    #[command(after_help = "Examples:\n  queuectl batch list\n  queuectl batch list --json --limit 1000")]
    List {
        /// Show at most this many
        #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
        limit: usize,
    },
    /// Show how far a batch is
    #[command(visible_alias = "status", after_help = "Example:\n  queuectl batch show nightly")]
    Show {
        /// The batch
        #[arg(value_name = "NAME")]
        name: BatchName,
    },
    Wait(WaitArgs),
    /// Cancel all jobs of a batch that are not finished
    #[command(after_help = "Examples:
  queuectl batch cancel nightly --dry-run
  queuectl batch cancel nightly --yes")]
    Cancel {
        /// The batch
        #[arg(value_name = "NAME")]
        name: BatchName,
        #[command(flatten)]
        bulk: BulkArgs,
    },
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    match args.verb {
        BatchVerb::List { limit } => list(context, limit)?,
        BatchVerb::Show { name } => {
            let batch = find(context.store()?, &name)?;
            show(context, &batch)?;
            hint_at_unsuccessful(context, &batch)?;
        }
        BatchVerb::Wait(args) => return wait::run(&args, context),
        BatchVerb::Cancel { name, bulk } => {
            find(context.store()?, &name)?;
            let phases = default_phases(CANCEL.verb);
            let filter = JobFilter { phases, batch: Some(name), ..JobFilter::default() };
            change_kind(context, &filter, &bulk, &CANCEL)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
