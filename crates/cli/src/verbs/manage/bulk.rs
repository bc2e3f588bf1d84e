//! Changing jobs, by id or all of a kind: what `cancel`, `retry` and `remove` have in common.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use crate::ask::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Which, hint_at_nothing};
use crate::render::progress::Bar;
use crate::render::report_change::{change_ids, code_of, tell};
use crate::render::shape::print_table;
use crate::render::text::{grouped, jobs};
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::bulk::{Tally, by_state, change_selected, changeable, default_phases, select};
use ops::jobs::change::ChangedJob;
use store::{JobFilter, JobRef, JobVerb, Phase};
use sys::process::user;

/// How many jobs a rehearsal shows.
const EXAMPLES: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Say which jobs are meant, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before changing more than one job
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A verb and how to speak of it.
pub(crate) struct Wording {
    pub(crate) verb: JobVerb,
    /// `cancel`
    pub(crate) what: &'static str,
    /// `cancelled`
    pub(crate) done: &'static str,
    /// Whether it cannot be undone, so that several ids are asked about, too.
    pub(crate) is_final: bool,
}

pub(crate) fn run(
    context: &Context,
    which: Which,
    args: &BulkArgs,
    wording: &Wording,
    say: impl Fn(&ChangedJob) -> String,
) -> Result<ExitCode, Failure> {
    match which {
        Which::Ids(ids) => run_ids(context, &ids, args, wording, say).map(code_of),
        Which::Kind(filter) => {
            change_kind(context, &meant(filter, wording)?, args, wording)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Changes these; returns the worst failure.
pub(crate) fn run_ids(
    context: &Context,
    ids: &[JobId],
    args: &BulkArgs,
    wording: &Wording,
    say: impl Fn(&ChangedJob) -> String,
) -> Result<Option<Exit>, Failure> {
    if args.dry_run {
        return rehearse_ids(context, ids, wording);
    }
    confirm(context, wording.what, ids.len() as u64, args.yes || !wording.is_final)?;
    change_ids(context, context.store()?, wording.verb, ids, say)
}

/// Only what the verb can change.
fn meant(filter: JobFilter, wording: &Wording) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        return Ok(JobFilter { phases: default_phases(wording.verb), ..filter });
    }
    let able = changeable(wording.verb);
    match filter.phases.iter().find(|phase| !able.contains(phase)) {
        None => Ok(filter),
        Some(phase) => {
            let names: Vec<&str> = able.iter().map(|phase| phase.name()).collect();
            Err(Failure::usage(format!("jobs that are {} cannot be {}", phase.name(), wording.done))
                .with_hint(format!("the states are {}", names.join(", "))))
        }
    }
}

/// Changes all jobs of a kind, after asking.
pub(crate) fn change_kind(
    context: &Context,
    filter: &JobFilter,
    args: &BulkArgs,
    wording: &Wording,
) -> Result<(), Failure> {
    let selected = select(context.store()?, filter)?;
    // Where only a state was asked for, that none was changed says it all.
    let is_narrowed = *filter != JobFilter { phases: filter.phases.clone(), ..JobFilter::default() };
    if selected.is_empty() && is_narrowed {
        hint_at_nothing(context, filter)?;
    }
    if args.dry_run {
        return dry_run(context, &selected, wording);
    }
    confirm(context, wording.what, selected.len() as u64, args.yes)?;
    let mut bar = Bar::new(context, wording.done, Some(selected.len() as u64));
    let tally =
        change_selected(context.store()?, wording.verb, selected, &user::name(), |more| bar.advance(more))?;
    drop(bar);
    tally.remove_logs(&context.location()?.home);
    print_tally(context, &tally, wording)
}

fn print_tally(context: &Context, tally: &Tally, wording: &Wording) -> Result<(), Failure> {
    for hint in hints(tally) {
        context.hint(&hint)?;
    }
    if context.json {
        let mut value = json!({ "count": tally.done });
        if tally.skipped > 0 {
            value["skipped"] = tally.skipped.into();
        }
        if tally.dependents > 0 {
            value["cancelled_dependents"] = tally.dependents.into();
        }
        return context.print_json(&value);
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    if context.person_reads {
        writeln!(out, "{} {}", jobs(tally.done), wording.done)?;
    } else {
        writeln!(out, "{}", tally.done)?;
    }
    Ok(out.flush()?)
}

fn hints(tally: &Tally) -> Vec<String> {
    let mut hints = Vec::new();
    match tally.skipped {
        0 => {}
        1 => hints.push("1 job had moved on or is waited for, and was left as it is".to_owned()),
        count => {
            hints.push(format!("{} had moved on or are waited for, and were left as they are", jobs(count)));
        }
    }
    match tally.dependents {
        0 => {}
        1 => hints.push("1 job that depends on them was cancelled too".to_owned()),
        count => hints.push(format!("{} that depend on them were cancelled too", jobs(count))),
    }
    if tally.leaves_dependents {
        hints.push("the workers are cancelling more jobs that depend on them".to_owned());
    }
    match tally.ending {
        0 => {}
        1 => hints.push("1 job still runs; its worker is ending it".to_owned()),
        count => hints.push(format!("{} still run; their workers are ending them", jobs(count))),
    }
    hints
}

/// Which of the jobs with these ids would be changed. What is not there is a failure, as it would be.
fn rehearse_ids(context: &Context, ids: &[JobId], wording: &Wording) -> Result<Option<Exit>, Failure> {
    let store = context.store()?;
    let mut worst: Option<Exit> = None;
    let mut seen = Vec::new();
    for id in ids {
        match store.find(id)? {
            Some(job) => seen.push(JobRef { number: job.number, state: job.life.state.name(), id: job.id }),
            None => worst = worst.max(Some(tell(context, &OpError::NoSuchJob(id.clone()).into()))),
        }
    }
    seen.retain(|seen| changeable(wording.verb).contains(&Phase::State(seen.state)));
    dry_run(context, &seen, wording)?;
    Ok(worst)
}

fn dry_run(context: &Context, selected: &[JobRef], wording: &Wording) -> Result<(), Failure> {
    let counts = by_state(selected);
    if context.json {
        let counts: BTreeMap<&str, u64> =
            counts.iter().map(|(state, count)| (state.name(), *count)).collect();
        let examples: Vec<&str> = selected.iter().take(EXAMPLES).map(|seen| seen.id.as_str()).collect();
        return context.print_json(&json!({ "count": selected.len(), "jobs": counts, "examples": examples }));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    writeln!(out, "would {} {}{}", wording.what, jobs(selected.len() as u64), told(&counts))?;
    out.flush()?;
    let store = context.store()?;
    let mut examples = Vec::new();
    for seen in selected.iter().take(EXAMPLES) {
        examples.extend(store.find(&seen.id)?);
    }
    print_table(context, &examples, store.now()?)
}

/// `: 10 pending, 2 failed`
fn told(counts: &BTreeMap<StateName, u64>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{} {}", grouped(*count), state.name())).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_and_several_are_spoken_of_as_such() {
        let mut tally = Tally::default();
        (tally.skipped, tally.dependents, tally.ending) = (1, 1, 1);
        assert_eq!(
            hints(&tally),
            [
                "1 job had moved on or is waited for, and was left as it is",
                "1 job that depends on them was cancelled too",
                "1 job still runs; its worker is ending it",
            ]
        );
        (tally.skipped, tally.dependents, tally.ending) = (0, 0, 2);
        assert_eq!(hints(&tally), ["2 jobs still run; their workers are ending them"]);
    }
}
