//! `queuectl batch`

mod list;
mod wait;

use sys::program::ExitCode;

use self::list::{hint_unsuccessful, list, show};
pub(crate) use self::wait::BatchProgress;
use self::wait::WaitArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::Selection;
use crate::flags::whole_number::whole_number;
use crate::verbs::manage::cancel::SignalArg;
use crate::verbs::manage::change::{ChangeArgs, change, code_of};
use domain::values::name::BatchName;
use ops::jobs::batch::find;
use store::JobFilter;

/// Track and cancel groups of jobs
///
/// `enqueue --batch NAME` adds jobs to a batch. A batch exists from its first job until its last job is removed.
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
    /// List batches, newest first
    #[command(after_help = "Examples:\n  queuectl batch list\n  queuectl batch list --json --limit 1000")]
    List {
        /// Show at most this many batches
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100, allow_negative_numbers = true,
              value_parser = whole_number::<usize>(0..=usize::MAX as i128))]
        limit: usize,
    },
    /// Show the progress of a batch
    #[command(visible_alias = "status", after_help = "Example:\n  queuectl batch show nightly")]
    Show {
        /// The batch's name
        #[arg(value_name = "NAME")]
        name: BatchName,
    },
    Wait(WaitArgs),
    /// Cancel all unfinished jobs of a batch
    #[command(after_help = "Examples:
  queuectl batch cancel nightly --dry-run
  queuectl batch cancel nightly --yes
  queuectl batch cancel nightly --signal KILL --yes")]
    Cancel {
        /// The batch's name
        #[arg(value_name = "NAME")]
        name: BatchName,
        #[command(flatten)]
        signal: SignalArg,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

pub(crate) fn run(args: Args, context: &Context) -> Result<ExitCode, Failure> {
    match args.verb {
        BatchVerb::List { limit } => list(context, limit)?,
        BatchVerb::Show { name } => {
            let batch = find(context.store()?, &name)?;
            show(context, &batch)?;
            hint_unsuccessful(context, &batch)?;
        }
        BatchVerb::Wait(args) => return wait::run(&args, context),
        BatchVerb::Cancel { name, signal, change: args } => {
            find(context.store()?, &name)?;
            let filter = JobFilter { batch: Some(name), ..JobFilter::default() };
            return change(context, Selection::Matching(Box::new(filter)), &args, &signal.wording())
                .map(code_of);
        }
    }
    Ok(ExitCode::SUCCESS)
}
