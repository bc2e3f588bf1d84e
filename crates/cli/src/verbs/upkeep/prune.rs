//! `queuectl prune`

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::ask::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Which, WhichArgs, hint_at_unknown};
use crate::render::progress::Bar;
use crate::render::report_change::{code_of, tell as report};
use crate::render::text::{grouped, jobs};
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::bulk::select;
use ops::upkeep::prune::{PruneScope, count, prune};
use store::retention::PruneTotals;
use store::{Conflict, JobFilter, JobRef, Phase};
use sys::process::user;

/// The states of jobs that can be forgotten here.
const FINISHED: [StateName; 3] = [StateName::Completed, StateName::Cancelled, StateName::Dead];

/// Forget what is old: jobs with history and output, and events
///
/// Without a selection it does at once what workers do by themselves, by the settings retain_completed (completed and
/// cancelled jobs), retain_dead, retain_logs and retain_events. With ids or a selection it forgets just those jobs, if they
/// are finished; unless --state says otherwise, those that are completed or cancelled. A job is kept that others still wait
/// for, or whose unique key is held for a time that is not over. Space that becomes free is given back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl prune
  queuectl prune --dry-run
  queuectl prune --state dead --older-than 90d --yes
  queuectl prune --queue mail --tag test --yes")]
pub(crate) struct Args {
    #[command(flatten)]
    which: WhichArgs,
    /// Only say what would be forgotten
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before forgetting more than one job
    #[arg(short, long)]
    yes: bool,
}

/// What to forget, and the worst that happened on the way to know it.
fn wanted(args: &Args, context: &Context) -> Result<(PruneScope, Option<Exit>), Failure> {
    if args.which.is_empty() {
        return Ok((PruneScope::BySettings, None));
    }
    match args.which.resolve(context)? {
        Which::Ids(ids) => finished(context, &ids),
        Which::Kind(filter) => {
            let filter = only_finished(filter)?;
            let jobs = select(context.store()?, &filter)?;
            if jobs.is_empty() {
                hint_at_unknown(context, &filter)?;
            }
            Ok((PruneScope::Chosen(jobs), None))
        }
    }
}

/// Those of these jobs that are finished; the others are reported.
fn finished(context: &Context, ids: &[JobId]) -> Result<(PruneScope, Option<Exit>), Failure> {
    let (mut jobs, mut worst) = (Vec::new(), None);
    for id in ids {
        let seen = match context.store()?.find(id)? {
            None => Err(OpError::NoSuchJob(id.clone())),
            Some(job) => match job.life.state.name() {
                state if state.is_finished() => Ok(JobRef { number: job.number, state, id: job.id }),
                state => Err(OpError::Conflict { id: job.id, conflict: Conflict::State(state) }),
            },
        };
        match seen {
            Ok(seen) => jobs.push(seen),
            Err(error) => worst = worst.max(Some(report(context, &error.into()))),
        }
    }
    Ok((PruneScope::Chosen(jobs), worst))
}

fn only_finished(filter: JobFilter) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        let phases = FINISHED[..2].iter().copied().map(Phase::State).collect();
        return Ok(JobFilter { phases, ..filter });
    }
    let is_finished = |phase: &Phase| FINISHED.map(Phase::State).contains(phase);
    match filter.phases.iter().find(|phase| !is_finished(phase)) {
        None => Ok(filter),
        Some(phase) => Err(Failure::usage(format!("jobs that are {} cannot be forgotten", phase.name()))
            .with_hint("only finished jobs can be: completed, cancelled, dead")),
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
        tell(context, count(store, &home, &wanted)?, true)?;
        return Ok(code_of(worst));
    }
    // What the settings say has been agreed to.
    if wanted != PruneScope::BySettings && !args.yes {
        confirm(context, "forget", count(store, &home, &wanted)?.jobs, false)?;
    }
    let mut bar = Bar::new(context, "forgetting", None);
    let forgotten = prune(store, &home, &wanted, &user::name(), |more| bar.advance(more))?;
    drop(bar);
    hint_at_kept(context, &wanted, forgotten.jobs)?;
    tell(context, forgotten, false)?;
    Ok(code_of(worst))
}

fn hint_at_kept(context: &Context, wanted: &PruneScope, forgotten: u64) -> Result<(), Failure> {
    let chosen = match wanted {
        PruneScope::BySettings => 0,
        PruneScope::Chosen(jobs) => jobs.len() as u64,
    };
    match chosen.saturating_sub(forgotten) {
        0 => Ok(()),
        kept => context.hint(&format!(
            "{} had moved on, are waited for or hold their unique key, and were kept",
            jobs(kept)
        )),
    }
}

fn tell(context: &Context, forgotten: PruneTotals, dry_run: bool) -> Result<(), Failure> {
    let PruneTotals { jobs: count, outputs, events } = forgotten;
    if context.json {
        return context.print_json(&PruneJson { jobs: count, outputs, events, dry_run });
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    if context.person_reads {
        let verb = if dry_run { "would be forgotten" } else { "forgotten" };
        let (jobs, outputs, events) = (jobs(count), grouped(outputs), grouped(events));
        writeln!(out, "{jobs} {verb}, and {outputs} outputs and {events} events of others")?;
    } else {
        writeln!(out, "{count}")?;
    }
    Ok(out.flush()?)
}
