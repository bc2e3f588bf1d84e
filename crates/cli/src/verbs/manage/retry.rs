//! `queuectl retry`

use std::process::ExitCode;

use super::bulk;
use super::bulk::{BulkArgs, Wording};
use super::edit;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::edit::EditFlags;
use crate::flags::selection::{WhichArgs, resolve_ids};
use crate::render::report_change::{code_of, tell};
use ops::jobs::change::Verb;
use ops::jobs::edit::EditMode;

/// Run jobs again, with fresh retries
///
/// Takes failed jobs (now instead of later), dead, cancelled and completed ones. Their history goes on. A job that is
/// pending or runs is left as it is (exit code 4). A selection without --state leaves completed jobs out.
/// Here --queue and --tag select jobs: --set-queue and --set-tags change them.
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
    which: WhichArgs,
    #[command(flatten)]
    bulk: BulkArgs,
    /// Change it on the way, by the flags below, or in an editor
    #[arg(long)]
    edit: bool,
    #[command(flatten)]
    flags: EditFlags,
}

pub(crate) const RETRY: Wording =
    Wording { verb: Verb::Retry, what: "retry", done: "retried", is_final: false };

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    if args.edit {
        return edit_and_retry(context, args);
    }
    if !args.flags.is_empty() {
        return Err(Failure::usage("a job is changed on the way only with --edit"));
    }
    let which = args.which.resolve(context)?;
    bulk::run(context, which, &args.bulk, &RETRY, |changed| {
        format!("Job {} is pending again", changed.job.id)
    })
}

fn edit_and_retry(context: &Context, args: &Args) -> Result<ExitCode, Failure> {
    let typed = args.which.only_ids().ok_or_else(|| {
        Failure::usage("jobs that are changed on the way are named by their ids")
            .with_hint("--queue and --tag select jobs; --set-queue and --set-tags change one")
    })?;
    let store = context.store()?;
    let mut worst = None;
    for id in &resolve_ids(context, typed)? {
        let edited = edit::wanted(context, store, id, args.flags.clone())
            .and_then(|wanted| edit::apply(context, store, id, &wanted, EditMode::EditAndRetry));
        if let Err(failure) = edited {
            worst = worst.max(Some(tell(context, &failure)));
        }
    }
    Ok(code_of(worst))
}
