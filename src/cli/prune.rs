//! `queuectl prune`

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;

use super::ask::confirm;
use super::context::Context;
use super::failure::Failure;
use super::progress::Bar;
use super::text::{grouped, jobs};
use crate::domain::life::StateName;
use crate::domain::nearest::nearest;
use crate::domain::span::parse_span;
use crate::ops::prune::{Wanted, count, prune};
use crate::store::retention::Forgotten;
use crate::sys::user;

/// The states of jobs that can be forgotten here.
const FINISHED: [StateName; 3] = [StateName::Completed, StateName::Cancelled, StateName::Dead];

/// Forget what is old: jobs with their history and output, and what people did
///
/// Without flags it does at once what workers do by themselves, by the settings retain_completed (completed and cancelled
/// jobs), retain_dead, retain_logs and retain_events. With --state or --older-than it forgets just those jobs, by when they
/// ended. A job that others still wait for is kept. Space that becomes free is given back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  queuectl prune
  queuectl prune --dry-run
  queuectl prune --state dead --older-than 90d --yes")]
pub(super) struct Args {
    /// Finished jobs in these states: completed, cancelled, dead [default: completed,cancelled]
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = parse_state)]
    state: Vec<StateName>,
    /// Jobs that ended longer ago than this: 90, 12h, 7d [default: at any time]
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    older_than: Option<Duration>,
    /// Only say what would be forgotten
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before forgetting more than one job
    #[arg(short, long)]
    yes: bool,
}

impl Args {
    fn wanted(&self) -> Wanted {
        if self.state.is_empty() && self.older_than.is_none() {
            return Wanted::BySettings;
        }
        let states = if self.state.is_empty() { &FINISHED[..2] } else { &self.state };
        Wanted::Jobs { states: states.to_vec(), older_than: self.older_than.unwrap_or_default() }
    }
}

fn parse_state(text: &str) -> Result<StateName, String> {
    if let Some(state) = FINISHED.into_iter().find(|state| state.name() == text) {
        return Ok(state);
    }
    if StateName::from_name(text).is_some() {
        return Err("only finished jobs can be forgotten: completed, cancelled, dead".to_owned());
    }
    Err(match nearest(text, FINISHED.map(StateName::name)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "there are completed, cancelled and dead".to_owned(),
    })
}

#[derive(Serialize)]
struct PruneJson {
    jobs: u64,
    outputs: u64,
    events: u64,
    dry_run: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<ExitCode, Failure> {
    let (store, home, wanted) = (context.store()?, context.location()?.home, args.wanted());
    if args.dry_run {
        tell(context, count(store, &home, &wanted)?, true)?;
        return Ok(ExitCode::SUCCESS);
    }
    // What the settings say has been agreed to.
    if wanted != Wanted::BySettings && !args.yes {
        confirm(context, "forget", count(store, &home, &wanted)?.jobs, false)?;
    }
    let mut bar = Bar::new(context, "forgetting", None);
    let forgotten = prune(store, &home, &wanted, &user::name(), |more| bar.advance(more))?;
    drop(bar);
    tell(context, forgotten, false)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(context: &Context, forgotten: Forgotten, dry_run: bool) -> Result<(), Failure> {
    let Forgotten { jobs: count, outputs, events } = forgotten;
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
