//! `queuectl prune`

use sys::program::ExitCode;

use serde::Serialize;

use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Selection, SelectionArgs, hint_unknown_name};
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::{grouped, jobs};
use crate::verbs::manage::change::{code_of, find_each};
use domain::job::Job;
use domain::job::life::StateName;
use ops::OpError;
use ops::upkeep::prune::{PruneScope, count, prune};
use store::retention::PruneTotals;
use store::{Conflict, JobFilter, Phase};
use sys::process::user;

/// Delete old jobs with their history and output, and old events
///
/// Without a selection, does at once what workers do regularly, according to the settings retain_completed (completed and
/// cancelled jobs), retain_dead, retain_logs, retain_events and retain_metrics. With ids or a selection, deletes those
/// finished jobs; a selection without --state means completed and cancelled jobs. A job is kept if others still wait for
/// it, or while its unique key is still taken. Freed space is returned to the file system.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl prune
  queuectl prune --dry-run
  queuectl prune --state dead --older-than 90d --yes
  queuectl prune --queue mail --tag test --yes")]
pub(crate) struct Args {
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    selection: SelectionArgs,
}

/// The jobs to delete, and the worst failure while resolving them.
fn wanted(args: &Args, context: &Context) -> Result<(PruneScope, Option<Exit>), Failure> {
    if args.selection.is_empty() {
        return Ok((PruneScope::BySettings, None));
    }
    match args.selection.resolve(context)? {
        Selection::Named(named) => {
            let (jobs, worst) = find_each(context, &named.ids, check_finished)?;
            Ok((PruneScope::Chosen(jobs), worst.max(named.worst)))
        }
        Selection::Matching(filter) => {
            let filter = only_finished(*filter)?;
            hint_unknown_name(context, &filter)?;
            Ok((PruneScope::Matching(Box::new(filter)), None))
        }
    }
}

fn check_finished(job: &Job) -> Result<(), OpError> {
    let state = job.life.state.name();
    let conflict =
        || OpError::Conflict { job: job.full_handle(), refused: "deleted", conflict: Conflict::State(state) };
    if state.is_finished() { Ok(()) } else { Err(conflict()) }
}

fn only_finished(filter: JobFilter) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        let phases = [StateName::Completed, StateName::Cancelled].map(Phase::State).to_vec();
        return Ok(JobFilter { phases, ..filter });
    }
    match filter.phases.iter().find(|phase| !phase.state().is_finished()) {
        None => Ok(filter),
        Some(phase) => Err(Failure::usage(format!("jobs that are {} cannot be pruned", phase.name()))
            .with_hint("the states are completed, cancelled, dead")),
    }
}

#[derive(Serialize)]
struct PruneJson {
    jobs: u64,
    outputs: u64,
    events: u64,
    dry_run: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let (store, home) = (context.store()?, context.location()?.home);
    let (wanted, worst) = wanted(args, context)?;
    if args.dry_run {
        print_summary(context, count(store, &home, &wanted)?, true)?;
        return Ok(code_of(worst));
    }
    // Pruning by the settings needs no confirmation: workers do it anyway.
    if wanted != PruneScope::BySettings && !args.yes {
        confirm(context, "delete", count(store, &home, &wanted)?.jobs, false)?;
    }
    let chosen = chosen(context, &wanted)?;
    let mut bar = Bar::new(context, "deleting", None);
    let deleted = prune(store, &home, &wanted, &user::name(), |more| bar.advance(more))?;
    drop(bar);
    hint_kept_jobs(context, chosen.saturating_sub(deleted.jobs))?;
    print_summary(context, deleted, false)?;
    Ok(code_of(worst))
}

/// How many jobs the caller has chosen.
fn chosen(context: &Context, wanted: &PruneScope) -> Result<u64, Failure> {
    Ok(match wanted {
        PruneScope::BySettings => 0,
        PruneScope::Chosen(jobs) => jobs.len() as u64,
        PruneScope::Matching(filter) => context.store()?.count(filter, None)?.count,
    })
}

fn hint_kept_jobs(context: &Context, kept: u64) -> Result<(), Failure> {
    match kept {
        0 => Ok(()),
        1 => context.hint("1 job kept: it changed, other jobs wait for it, or it holds a unique key"),
        kept => context.hint(&format!(
            "{} kept: they changed, other jobs wait for them, or they hold a unique key",
            jobs(kept)
        )),
    }
}

fn print_summary(context: &Context, deleted: PruneTotals, dry_run: bool) -> Result<(), Failure> {
    let PruneTotals { jobs: count, outputs, events } = deleted;
    let json = PruneJson { jobs: count, outputs, events, dry_run };
    let verb = if dry_run { "Would delete" } else { "Deleted" };
    let old = |count: u64, what: &str| {
        format!("{} old {what}{}", grouped(count), if count == 1 { "" } else { "s" })
    };
    let (jobs, logs, events) = (jobs(count), old(outputs, "log"), old(events, "event"));
    let sentence = format!("{verb} {jobs}, {logs} and {events}");
    report_change(context, &count.to_string(), &json, &sentence)
}
