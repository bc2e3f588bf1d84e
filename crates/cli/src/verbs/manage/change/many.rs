//! Changes all jobs of a selection: counts them, asks, and reports how many were changed.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;

use super::ChangeArgs;
use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::Failure;
use crate::flags::selection::{hint_dead_not_failed, hint_no_match};
use crate::render::list_format::print_table;
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::{grouped, jobs};
use domain::job::Job;
use domain::job::life::StateName;
use ops::jobs::bulk::{BulkChange, bulk};
use ops::jobs::change::{Tally, Verb, remove_orphaned_logs};
use store::{JobCount, JobFilter, Phase, Search};
use sys::process::user;

/// At most this many jobs are shown by `--dry-run`.
pub(super) const MAX_PREVIEW_JOBS: usize = 10;

/// A change of many jobs, and its forms in messages.
pub(crate) struct ManyChange {
    pub(crate) what: BulkChange,
    /// `cancel`
    pub(crate) infinitive: &'static str,
    /// `cancelled`
    pub(crate) participle: &'static str,
}

/// Changes the jobs that match, or shows which it would change.
pub(crate) fn change_selection(
    context: &Context,
    filter: JobFilter,
    args: &ChangeArgs,
    change: &ManyChange,
) -> Result<(), Failure> {
    let names_states = !filter.phases.is_empty();
    let filter = restrict_states(filter, change)?;
    let count = context.store()?.count(&filter, None)?;
    if count.count == 0 {
        hint_none_selected(context, &filter, names_states, change)?;
    }
    change_matching(context, &filter, &count, args, change)
}

fn hint_none_selected(
    context: &Context,
    filter: &JobFilter,
    names_states: bool,
    change: &ManyChange,
) -> Result<(), Failure> {
    if *filter == (JobFilter { phases: filter.phases.clone(), ..JobFilter::default() }) {
        // If the filter is only a state, "0 jobs cancelled" is enough.
        return hint_dead_not_failed(context, filter).map(|_| ());
    }
    if names_states || !hint_other_states(context, filter, change)? {
        hint_no_match(context, filter)?;
    }
    Ok(())
}

/// Prints a hint if jobs in other states match: the verb excludes them unless the user names their state, or at all.
fn hint_other_states(context: &Context, filter: &JobFilter, change: &ManyChange) -> Result<bool, Failure> {
    let others = context.store()?.count(&JobFilter { phases: Vec::new(), ..filter.clone() }, None)?;
    let parts: Vec<String> = others
        .by_state
        .into_iter()
        .map(|(state, count)| {
            let (jobs, name, verb) = (jobs(count), state.name(), change.infinitive);
            let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
            if change.what.applies_to(state) {
                format!("{jobs} {are} {name}; to {verb} {them}, add --state {name}")
            } else if name == change.participle {
                format!("{jobs} {are} {name} already")
            } else {
                format!("{jobs} {are} {name} and cannot be {}", change.participle)
            }
        })
        .collect();
    if parts.is_empty() {
        return Ok(false);
    }
    context.hint(&format!("no jobs matched: {}", parts.join("; ")))?;
    Ok(true)
}

/// Restricts the filter to states that the verb can change; refuses any other state.
fn restrict_states(filter: JobFilter, change: &ManyChange) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        return Ok(JobFilter { phases: change.what.default_phases(), ..filter });
    }
    let Some(phase) = filter.phases.iter().find(|phase| !change.what.applies_to(phase.state())) else {
        return Ok(filter);
    };
    let names: Vec<&str> = change.what.changeable().map(Phase::name).collect();
    Err(Failure::usage(format!("jobs that are {} cannot be {}", phase.name(), change.participle))
        .with_hint(format!("the states are {}", names.join(", "))))
}

/// Changes the jobs that match; counts and reports them.
fn change_matching(
    context: &Context,
    filter: &JobFilter,
    count: &JobCount,
    args: &ChangeArgs,
    change: &ManyChange,
) -> Result<(), Failure> {
    let store = context.store()?;
    if args.dry_run {
        let search = Search { filter: filter.clone(), limit: MAX_PREVIEW_JOBS, ..Search::default() };
        return preview(context, &count.by_state, &store.search(&search)?.jobs, change);
    }
    confirm(context, change.infinitive, count.count, args.yes)?;
    let mut bar = Bar::new(context, change.participle, Some(count.count));
    let tally = bulk(store, change.what.clone(), filter, &user::name(), |more| bar.advance(more), || false)?;
    drop(bar);
    if change.what == BulkChange::Verb(Verb::Remove) && tally.done > 0 {
        remove_orphaned_logs(store, &context.location()?.home)?;
    }
    print_tally(context, &tally, change)
}

fn print_tally(context: &Context, tally: &Tally, change: &ManyChange) -> Result<(), Failure> {
    for hint in hints(tally, &change.what) {
        context.hint(&hint)?;
    }
    let mut json = json!({ "count": tally.done });
    for (name, count) in [("skipped", tally.skipped), ("cancelled_dependents", tally.dependents)] {
        if count > 0 {
            json[name] = count.into();
        }
    }
    let sentence = format!("{} {}", jobs(tally.done), change.participle);
    report_change(context, &tally.done.to_string(), &json, &sentence)
}

fn hints(tally: &Tally, change: &BulkChange) -> Vec<String> {
    let number = |count, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{} {several}", grouped(count))),
    };
    let (one, several) = match change {
        BulkChange::Verb(_) => (
            "job was skipped: its state changed, other jobs wait for it, or a job that it depends on failed",
            "jobs were skipped: their state changed, other jobs wait for them, or a job that they depend on failed",
        ),
        BulkChange::Edit(_) => (
            "job was skipped: its state changed, or its other fields contradict the change",
            "jobs were skipped: their state changed, or their other fields contradict the change",
        ),
    };
    let skipped = number(tally.skipped, one, several);
    let dependents =
        number(tally.dependents, "dependent job was cancelled, too", "dependent jobs were cancelled, too");
    let more = "workers are cancelling more jobs that depend on them";
    let ending = number(
        tally.ending,
        "job is still running; its worker is stopping it",
        "jobs are still running; their workers are stopping them",
    );
    let more = tally.leaves_dependents.then(|| more.to_owned());
    [skipped, dependents, more, ending].into_iter().flatten().collect()
}

pub(super) fn preview(
    context: &Context,
    counts: &BTreeMap<StateName, u64>,
    examples: &[Job],
    change: &ManyChange,
) -> Result<(), Failure> {
    let count: u64 = counts.values().sum();
    if context.json {
        let examples: Vec<&str> = examples.iter().map(|job| job.id.as_str()).collect();
        return context.print_json(&json!({ "count": count, "jobs": counts, "examples": examples }));
    }
    if context.quiet {
        return Ok(());
    }
    let parts: Vec<String> =
        counts.iter().map(|(state, count)| format!("{} {}", grouped(*count), state.name())).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    let mut out = context.out();
    writeln!(out, "Would {} {}{colon}{}", change.infinitive, jobs(count), parts.join(", "))?;
    out.flush()?;
    print_table(context, examples, &context.clock(context.store()?.now()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_use_singular_and_plural() {
        let mut tally = Tally::default();
        (tally.skipped, tally.dependents, tally.ending) = (1, 1, 1);
        assert_eq!(
            hints(&tally, &Verb::CANCEL.into()),
            [
                "1 job was skipped: its state changed, other jobs wait for it, or a job that it depends on failed",
                "1 dependent job was cancelled, too",
                "1 job is still running; its worker is stopping it",
            ]
        );
        (tally.skipped, tally.dependents, tally.ending) = (0, 0, 2);
        assert_eq!(
            hints(&tally, &Verb::CANCEL.into()),
            ["2 jobs are still running; their workers are stopping them"]
        );
    }
}
