//! Changes jobs by id or by selection: the common part of `cancel`, `retry` and `remove`.

use std::collections::BTreeMap;
use std::io::Write;
use sys::program::ExitCode;

use serde_json::json;

use super::change_ids::{change_ids, code_of, report_and_continue};
use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::flags::selection::{Selection, hint_no_match};
use crate::render::list_format::print_table;
use crate::render::progress::Bar;
use crate::render::text::{grouped, jobs};
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::bulk::{Tally, by_state, change_selected, changeable, default_phases, select};
use ops::jobs::change::ChangedJob;
use store::{JobFilter, JobRef, JobVerb, Phase};
use sys::process::user;

/// At most this many jobs are shown by `--dry-run`.
const MAX_PREVIEW_JOBS: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct BulkArgs {
    /// Show which jobs would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A verb and its forms in messages.
pub(crate) struct Wording {
    pub(crate) verb: JobVerb,
    /// `cancel`
    pub(crate) infinitive: &'static str,
    /// `cancelled`
    pub(crate) participle: &'static str,
    /// Whether it cannot be undone, so that several ids need a confirmation, too.
    pub(crate) is_final: bool,
}

pub(crate) fn run(
    context: &Context,
    which: Selection,
    args: &BulkArgs,
    wording: &Wording,
    say: impl Fn(&ChangedJob) -> String,
) -> Result<ExitCode, Failure> {
    match which {
        Selection::Ids(ids) => run_ids(context, &ids, args, wording, say).map(code_of),
        Selection::Matching(filter) => {
            change_matching(context, &restrict_states(filter, wording)?, args, wording)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Changes the jobs with these ids; returns the worst failure.
pub(crate) fn run_ids(
    context: &Context,
    ids: &[JobId],
    args: &BulkArgs,
    wording: &Wording,
    say: impl Fn(&ChangedJob) -> String,
) -> Result<Option<Exit>, Failure> {
    if args.dry_run {
        return preview_ids(context, ids, wording);
    }
    confirm(context, wording.infinitive, ids.len() as u64, args.yes || !wording.is_final)?;
    change_ids(context, context.store()?, wording.verb, ids, say)
}

/// Restricts the filter to states that the verb can change; refuses any other state.
fn restrict_states(filter: JobFilter, wording: &Wording) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        return Ok(JobFilter { phases: default_phases(wording.verb), ..filter });
    }
    let able = changeable(wording.verb);
    match filter.phases.iter().find(|phase| !able.contains(phase)) {
        None => Ok(filter),
        Some(phase) => {
            let names: Vec<&str> = able.iter().map(|phase| phase.name()).collect();
            Err(Failure::usage(format!("jobs that are {} cannot be {}", phase.name(), wording.participle))
                .with_hint(format!("the states are {}", names.join(", "))))
        }
    }
}

/// Changes all jobs that match, after asking.
pub(crate) fn change_matching(
    context: &Context,
    filter: &JobFilter,
    args: &BulkArgs,
    wording: &Wording,
) -> Result<(), Failure> {
    let selected = select(context.store()?, filter)?;
    // If the filter is only a state, "0 jobs cancelled" is enough.
    let is_narrowed = *filter != JobFilter { phases: filter.phases.clone(), ..JobFilter::default() };
    if selected.is_empty() && is_narrowed {
        hint_no_match(context, filter)?;
    }
    if args.dry_run {
        return preview(context, &selected, wording);
    }
    confirm(context, wording.infinitive, selected.len() as u64, args.yes)?;
    let mut bar = Bar::new(context, wording.participle, Some(selected.len() as u64));
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
    if context.stdout_is_terminal {
        writeln!(out, "{} {}", jobs(tally.done), wording.participle)?;
    } else {
        writeln!(out, "{}", tally.done)?;
    }
    Ok(out.flush()?)
}

fn hints(tally: &Tally) -> Vec<String> {
    let mut hints = Vec::new();
    match tally.skipped {
        0 => {}
        1 => hints.push("1 job was skipped: its state changed, or other jobs wait for it".to_owned()),
        count => {
            hints.push(format!(
                "{} were skipped: their state changed, or other jobs wait for them",
                jobs(count)
            ));
        }
    }
    match tally.dependents {
        0 => {}
        1 => hints.push("1 dependent job was cancelled, too".to_owned()),
        count => hints.push(format!("{} dependent jobs were cancelled, too", grouped(count))),
    }
    if tally.leaves_dependents {
        hints.push("workers are cancelling more jobs that depend on them".to_owned());
    }
    match tally.ending {
        0 => {}
        1 => hints.push("1 job is still running; its worker is stopping it".to_owned()),
        count => hints.push(format!("{} are still running; their workers are stopping them", jobs(count))),
    }
    hints
}

/// Shows which of the jobs with these ids would be changed. A missing job is a failure, as in the real run.
fn preview_ids(context: &Context, ids: &[JobId], wording: &Wording) -> Result<Option<Exit>, Failure> {
    let store = context.store()?;
    let mut worst: Option<Exit> = None;
    let mut seen = Vec::new();
    for id in ids {
        match store.find(id)? {
            Some(job) => seen.push(JobRef { number: job.number, state: job.life.state.name(), id: job.id }),
            None => {
                worst = worst.max(Some(report_and_continue(context, &OpError::NoSuchJob(id.clone()).into())));
            }
        }
    }
    seen.retain(|seen| changeable(wording.verb).contains(&Phase::State(seen.state)));
    preview(context, &seen, wording)?;
    Ok(worst)
}

fn preview(context: &Context, selected: &[JobRef], wording: &Wording) -> Result<(), Failure> {
    let counts = by_state(selected);
    if context.json {
        let counts: BTreeMap<&str, u64> =
            counts.iter().map(|(state, count)| (state.name(), *count)).collect();
        let examples: Vec<&str> =
            selected.iter().take(MAX_PREVIEW_JOBS).map(|seen| seen.id.as_str()).collect();
        return context.print_json(&json!({ "count": selected.len(), "jobs": counts, "examples": examples }));
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    writeln!(
        out,
        "Would {} {}{}",
        wording.infinitive,
        jobs(selected.len() as u64),
        describe_counts(&counts)
    )?;
    out.flush()?;
    let store = context.store()?;
    let mut examples = Vec::new();
    for seen in selected.iter().take(MAX_PREVIEW_JOBS) {
        examples.extend(store.find(&seen.id)?);
    }
    print_table(context, &examples, store.now()?)
}

/// `: 10 pending, 2 failed`
fn describe_counts(counts: &BTreeMap<StateName, u64>) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{} {}", grouped(*count), state.name())).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_use_singular_and_plural() {
        let mut tally = Tally::default();
        (tally.skipped, tally.dependents, tally.ending) = (1, 1, 1);
        assert_eq!(
            hints(&tally),
            [
                "1 job was skipped: its state changed, or other jobs wait for it",
                "1 dependent job was cancelled, too",
                "1 job is still running; its worker is stopping it",
            ]
        );
        (tally.skipped, tally.dependents, tally.ending) = (0, 0, 2);
        assert_eq!(hints(&tally), ["2 jobs are still running; their workers are stopping them"]);
    }
}
