//! `queuectl retry`

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of, report_and_continue};
use super::edit;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::edit::EditFlags;
use crate::flags::handle::{NamedJobs, latest_to_change, resolve_ids};
use crate::flags::selection::{Selection, SelectionArgs};
use ops::jobs::change::Verb;
use store::AfterEdit;

/// Run jobs again, with their full number of retries
///
/// Retries failed jobs (now instead of after their backoff), dead, cancelled and completed jobs. Their history is kept. A
/// pending or running job cannot be retried (exit code 4). A selection without --state excludes completed jobs.
///
/// Here --queue and --tag select jobs; --set-queue and --set-tags change them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl retry job1
  queuectl retry job1 job2
  queuectl retry --state dead --queue mail --dry-run
  queuectl retry --state failed --older-than 1h --yes
  queuectl retry job1 --edit --timeout 10m
  queuectl retry job1 --edit --set-queue slow")]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
    /// Change the jobs before retrying them, with the flags below or in an editor
    #[arg(long)]
    edit: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    flags: EditFlags,
}

pub(crate) const RETRY: Wording = Wording {
    verb: Verb::Retry,
    infinitive: "retry",
    participle: "retried",
    is_final: false,
    sentence: |changed| format!("Job {} is pending again", changed.job.handle()),
};

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.edit {
        return edit_and_retry(context, args);
    }
    if !args.flags.is_empty() {
        return Err(Failure::usage("flags that change a job need --edit"));
    }
    let latest = || Ok(Selection::Named(latest_to_change(context)?.into()));
    let which = args.selection.resolve_or(context, latest)?;
    change(context, which, &args.change, &RETRY).map(code_of)
}

fn edit_and_retry(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let NamedJobs { ids, mut worst } = if args.selection.is_empty() {
        latest_to_change(context)?.into()
    } else {
        let typed = args.selection.only_ids().ok_or_else(|| {
            Failure::usage("--edit needs the ids of jobs, not a selection")
                .with_hint("--queue and --tag select jobs; --set-queue and --set-tags change one")
        })?;
        resolve_ids(context, typed)?
    };
    let store = context.store()?;
    for id in &ids {
        let edited =
            edit::requested_edit(context, store, id, args.flags.clone()).and_then(
                |requested| match requested {
                    Some(requested) => edit::apply(context, store, id, &requested, AfterEdit::Retry),
                    None => context.hint(&format!("{}; the job is not retried", edit::NO_CHANGES)),
                },
            );
        if let Err(failure) = edited {
            worst = worst.max(Some(report_and_continue(context, &failure)));
        }
    }
    if let (Some(start), None) = (args.flags.start_time(), worst) {
        start.confirm(context)?;
    }
    Ok(code_of(worst))
}
