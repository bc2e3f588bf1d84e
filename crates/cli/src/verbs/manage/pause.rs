//! `queuectl pause`, and what `queuectl resume` has in common with it.

use sys::program::ExitCode;

use super::change::{ChangeArgs, Wording, change, code_of};
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Selection, SelectionArgs};
use domain::values::name::JobId;
use ops::jobs::change::Verb;
use store::Store;

/// Pause running jobs
///
/// The worker stops the command and every process that it started; `queuectl resume` continues them. A paused job stays
/// `processing`: it keeps its slot, its lease and its memory, its timeout stands still, and `paused_at` says since when.
/// Only running jobs can be paused (exit code 4): `queuectl queue pause QUEUE` keeps waiting jobs from starting.
///
/// The command returns when the order is stored. A worker on this machine carries it out within 100 ms, another one with
/// its next heartbeat.
///
/// A worker that has to stop resumes its paused jobs, and waits for them to end. If the worker dies, the job runs again, and
/// the new attempt is not paused.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl pause job1
  queuectl pause --tag nightly
  queuectl list --state paused")]
pub(crate) struct Args {
    /// Only show which jobs would be paused
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

const PAUSE: Wording = Wording {
    verb: Verb::Pause,
    infinitive: "pause",
    participle: "paused",
    is_final: false,
    sentence: |changed| format!("Job {} is being paused by its worker", changed.job.handle()),
};

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    pause_or_resume(context, &args.selection, args.dry_run, &PAUSE)
}

pub(super) fn pause_or_resume(
    context: &Context,
    selection: &SelectionArgs,
    dry_run: bool,
    wording: &Wording,
) -> Result<ExitCode, Failure> {
    let which = selection.resolve_or(context, || Err(no_job_named(wording.infinitive)))?;
    if let Selection::Named(named) = &which {
        refuse_other_names(context.store()?, &named.ids, wording.infinitive)?;
    }
    // It can be undone, so it never asks.
    change(context, which, &ChangeArgs { dry_run, yes: true }, wording).map(code_of)
}

fn no_job_named(verb: &str) -> Failure {
    Failure::usage("no jobs given").with_hint(format!(
        "`queuectl {verb} JOB` is for a running job; for a queue use `queuectl queue {verb} QUEUE`, for a schedule \
         `queuectl schedule {verb} NAME`"
    ))
}

/// Other things can be paused too, and users may leave out what they are.
fn refuse_other_names(store: &dyn Store, ids: &[JobId], verb: &str) -> Result<(), Failure> {
    for id in ids {
        if store.find(id)?.is_some() {
            continue;
        }
        let is_queue = store.queues()?.iter().any(|queue| queue.name.as_str() == id.as_str());
        let is_schedule = || -> Result<bool, Failure> {
            Ok(store.schedules()?.iter().any(|(schedule, _)| schedule.name.as_str() == id.as_str()))
        };
        let kind = if is_queue {
            "queue"
        } else if is_schedule()? {
            "schedule"
        } else {
            continue;
        };
        return Err(Failure::new(Exit::NotFound, format!("there is no job `{id}`"))
            .with_hint(format!("to {verb} the {kind}: `queuectl {kind} {verb} {id}`")));
    }
    Ok(())
}
