//! Changes jobs by id or by selection: the common part of `cancel`, `retry`, `remove` and `dlq`.
//!
//! By id, every job is tried, every result is reported, and the worst failure is returned. A selection is counted.

use std::collections::BTreeMap;
use std::io::Write;
use sys::program::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure, report};
use crate::flags::handle::NamedJobs;
use crate::flags::selection::{Selection, hint_dead_not_failed, hint_no_match};
use crate::render::list_format::print_table;
use crate::render::progress::Bar;
use crate::render::report_change::report_change;
use crate::render::text::{grouped, jobs, printable};
use crate::verbs::jobs::autostart::autostart_if_ready;
use domain::job::Job;
use domain::job::life::StateName;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::bulk::bulk;
use ops::jobs::change::{
    ChangeResults, ChangedJob, Tally, Verb, by_state, change_ids, changeable, default_phases, remove_logs,
    remove_orphaned_logs,
};
use ops::json::JobJson;
use store::{JobCount, JobFilter, JobRef, Phase, Search, Store};
use sys::process::user;

/// At most this many jobs are shown by `--dry-run`.
const MAX_PREVIEW_JOBS: usize = 10;

/// At most this many cancelled dependents are listed.
const MAX_NAMED_DEPENDENTS: usize = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// Only show which jobs would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// A verb and its forms in messages.
pub(crate) struct Wording {
    pub(crate) verb: Verb,
    /// `cancel`
    pub(crate) infinitive: &'static str,
    /// `cancelled`
    pub(crate) participle: &'static str,
    /// Whether it cannot be undone, so that several ids need a confirmation, too.
    pub(crate) is_final: bool,
    /// The sentence for a person about a job that was changed by id.
    pub(crate) sentence: fn(&ChangedJob) -> String,
}

/// Changes these jobs; returns the worst failure.
pub(crate) fn change(
    context: &Context,
    which: Selection,
    args: &ChangeArgs,
    wording: &Wording,
) -> Result<Option<Exit>, Failure> {
    let worst = change_all(context, which, args, wording)?;
    if wording.verb.is_retry() && !args.dry_run {
        autostart_if_ready(context)?;
    }
    Ok(worst)
}

fn change_all(
    context: &Context,
    which: Selection,
    args: &ChangeArgs,
    wording: &Wording,
) -> Result<Option<Exit>, Failure> {
    match which {
        Selection::Named(NamedJobs { ids, worst }) if args.dry_run => {
            Ok(worst.max(preview_ids(context, &ids, wording)?))
        }
        Selection::Named(NamedJobs { ids, worst }) => {
            if wording.is_final && !args.yes && ids.len() > 1 {
                confirm(context, wording.infinitive, count_changeable(context, &ids, wording)?, false)?;
            }
            Ok(worst.max(change_each(context, &ids, wording)?))
        }
        Selection::Matching(filter) => {
            let names_states = !filter.phases.is_empty();
            let filter = restrict_states(*filter, wording)?;
            let count = context.store()?.count(&filter, None)?;
            if count.count == 0 {
                hint_none_selected(context, &filter, names_states, wording)?;
            }
            change_matching(context, &filter, &count, args, wording)?;
            Ok(None)
        }
    }
}

/// How many of the jobs with these ids exist and can be changed.
fn count_changeable(context: &Context, ids: &[JobId], wording: &Wording) -> Result<u64, Failure> {
    let mut count = 0;
    for id in ids {
        let job = context.store()?.find(id)?;
        count += u64::from(job.is_some_and(|job| wording.verb.applies_to(job.life.state.name())));
    }
    Ok(count)
}

fn hint_none_selected(
    context: &Context,
    filter: &JobFilter,
    names_states: bool,
    wording: &Wording,
) -> Result<(), Failure> {
    if *filter == (JobFilter { phases: filter.phases.clone(), ..JobFilter::default() }) {
        // If the filter is only a state, "0 jobs cancelled" is enough.
        return hint_dead_not_failed(context, filter).map(|_| ());
    }
    if names_states || !hint_other_states(context, filter, wording)? {
        hint_no_match(context, filter)?;
    }
    Ok(())
}

/// Prints a hint if jobs in other states match: the verb excludes them unless the user names their state, or at all.
fn hint_other_states(context: &Context, filter: &JobFilter, wording: &Wording) -> Result<bool, Failure> {
    let others = context.store()?.count(&JobFilter { phases: Vec::new(), ..filter.clone() }, None)?;
    let parts: Vec<String> = others
        .by_state
        .into_iter()
        .map(|(state, count)| {
            let (jobs, name, verb) = (jobs(count), state.name(), wording.infinitive);
            let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
            if wording.verb.applies_to(state) {
                format!("{jobs} {are} {name}; to {verb} {them}, add --state {name}")
            } else if name == wording.participle {
                format!("{jobs} {are} {name} already")
            } else {
                format!("{jobs} {are} {name} and cannot be {}", wording.participle)
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
fn restrict_states(filter: JobFilter, wording: &Wording) -> Result<JobFilter, Failure> {
    if filter.phases.is_empty() {
        return Ok(JobFilter { phases: default_phases(wording.verb), ..filter });
    }
    let Some(phase) = filter.phases.iter().find(|phase| !wording.verb.applies_to(phase.state())) else {
        return Ok(filter);
    };
    let names: Vec<&str> = changeable(wording.verb).map(Phase::name).collect();
    Err(Failure::usage(format!("jobs that are {} cannot be {}", phase.name(), wording.participle))
        .with_hint(format!("the states are {}", names.join(", "))))
}

/// Changes the jobs that match; counts and reports them.
fn change_matching(
    context: &Context,
    filter: &JobFilter,
    count: &JobCount,
    args: &ChangeArgs,
    wording: &Wording,
) -> Result<(), Failure> {
    let store = context.store()?;
    if args.dry_run {
        let search = Search { filter: filter.clone(), limit: MAX_PREVIEW_JOBS, ..Search::default() };
        return preview(context, &count.by_state, &store.search(&search)?.jobs, wording);
    }
    confirm(context, wording.infinitive, count.count, args.yes)?;
    let mut bar = Bar::new(context, wording.participle, Some(count.count));
    let tally = bulk(store, wording.verb, filter, &user::name(), |more| bar.advance(more), || false)?;
    drop(bar);
    if wording.verb == Verb::Remove && tally.done > 0 {
        remove_orphaned_logs(store, &context.location()?.home)?;
    }
    print_tally(context, &tally, wording)
}

fn change_each(context: &Context, ids: &[JobId], wording: &Wording) -> Result<Option<Exit>, Failure> {
    let ChangeResults { jobs, leaves_dependents, stopped } =
        change_ids(context.store()?, wording.verb, ids, &user::name());
    let mut worst = None;
    let mut done = Vec::new();
    for result in jobs {
        match result {
            Ok(changed) => done.push(changed),
            Err(error) => worst = worst.max(Some(report_and_continue(context, &error.into()))),
        }
    }
    if wording.verb == Verb::Remove {
        remove_logs(&context.location()?.home, done.iter().map(|changed| &changed.job));
    }
    if stopped.is_none() || !done.is_empty() {
        print_each(context, &done, wording)?;
    }
    if leaves_dependents {
        context.hint("workers are cancelling more jobs that depend on these")?;
    }
    stopped.map_or(Ok(worst), |error| Err(error.into()))
}

/// A job and, if it was cancelled, the dependents that were cancelled with it.
#[derive(Serialize)]
struct ChangedJson<'a> {
    #[serde(flatten)]
    job: JobJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_dependents: Option<Vec<&'a str>>,
}

fn print_each(context: &Context, done: &[ChangedJob], wording: &Wording) -> Result<(), Failure> {
    if context.json {
        let jobs = done.iter().map(|ChangedJob { job, dependents, .. }| {
            let names = || dependents.iter().map(JobId::as_str).collect();
            let cancelled_dependents = wording.verb.is_cancel().then(names);
            ChangedJson { job: JobJson::from(job), cancelled_dependents }
        });
        return context.print_json(&jobs.collect::<Vec<_>>());
    }
    let mut out = context.out();
    for changed in done.iter().filter(|_| !context.quiet) {
        if context.stdout_is_terminal {
            writeln!(out, "{}", printable(&(wording.sentence)(changed)))?;
        } else {
            writeln!(out, "{}", changed.job.id)?;
        }
    }
    out.flush()?;
    // The ids alone do not mention the dependents.
    let with_dependents = done.iter().filter(|changed| !changed.dependents.is_empty());
    for changed in with_dependents.filter(|_| !context.stdout_is_terminal) {
        let (of, named) = (&changed.job.id, describe_dependents(&changed.dependents));
        context.hint(&printable(&format!("cancelled with job {of}: {named}")))?;
    }
    Ok(())
}

/// `2 jobs that depend on it (b, c)`
pub(crate) fn describe_dependents(dependents: &[JobId]) -> String {
    let count = dependents.len();
    let mut names: Vec<String> = dependents.iter().take(MAX_NAMED_DEPENDENTS).map(JobId::to_string).collect();
    if count > MAX_NAMED_DEPENDENTS {
        names.push(format!("and {} more", grouped((count - MAX_NAMED_DEPENDENTS) as u64)));
    }
    let depend = if count == 1 { "depends" } else { "depend" };
    format!("{} that {depend} on it ({})", jobs(count as u64), names.join(", "))
}

fn print_tally(context: &Context, tally: &Tally, wording: &Wording) -> Result<(), Failure> {
    for hint in hints(tally) {
        context.hint(&hint)?;
    }
    let mut json = json!({ "count": tally.done });
    for (name, count) in [("skipped", tally.skipped), ("cancelled_dependents", tally.dependents)] {
        if count > 0 {
            json[name] = count.into();
        }
    }
    let sentence = format!("{} {}", jobs(tally.done), wording.participle);
    report_change(context, &tally.done.to_string(), &json, &sentence)
}

fn hints(tally: &Tally) -> Vec<String> {
    let number = |count, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{} {several}", grouped(count))),
    };
    let skipped = number(
        tally.skipped,
        "job was skipped: its state changed, other jobs wait for it, or a job that it depends on failed",
        "jobs were skipped: their state changed, other jobs wait for them, or a job that they depend on failed",
    );
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

/// Shows which of the jobs with these ids would be changed. A missing job is a failure, as in the real run.
fn preview_ids(context: &Context, ids: &[JobId], wording: &Wording) -> Result<Option<Exit>, Failure> {
    let (mut seen, worst) = find_each(context, ids, |_| Ok(()))?;
    seen.retain(|seen| wording.verb.applies_to(seen.state));
    let store = context.store()?;
    let mut examples = Vec::new();
    for seen in seen.iter().take(MAX_PREVIEW_JOBS) {
        examples.extend(store.find(&seen.id)?);
    }
    preview(context, &by_state(&seen), &examples, wording)?;
    Ok(worst)
}

fn preview(
    context: &Context,
    counts: &BTreeMap<StateName, u64>,
    examples: &[Job],
    wording: &Wording,
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
    writeln!(out, "Would {} {}{colon}{}", wording.infinitive, jobs(count), parts.join(", "))?;
    out.flush()?;
    print_table(context, examples, &context.clock(context.store()?.now()?))
}

/// The jobs with these ids. A missing job and one that `check` refuses are reported; the worst failure is returned.
pub(crate) fn find_each(
    context: &Context,
    ids: &[JobId],
    check: impl Fn(&Job) -> Result<(), OpError>,
) -> Result<(Vec<JobRef>, Option<Exit>), Failure> {
    let (mut jobs, mut worst) = (Vec::new(), None);
    for id in ids {
        let found = context.store()?.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()));
        match found.and_then(|job| check(&job).map(|()| job)) {
            Ok(job) => jobs.push(JobRef { number: job.number, state: job.life.state.name(), id: job.id }),
            Err(error) => worst = worst.max(Some(report_and_continue(context, &error.into()))),
        }
    }
    Ok((jobs, worst))
}

/// The exit code for the worst failure.
pub(crate) fn code_of(worst: Option<Exit>) -> ExitCode {
    worst.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Reports a failure that does not end the command.
pub(crate) fn report_and_continue(context: &Context, failure: &Failure) -> Exit {
    report(failure, context.json, context.color);
    failure.exit
}

/// The job with this id, or exit 3.
pub(crate) fn find(store: &dyn Store, id: &JobId) -> Result<Job, Failure> {
    Ok(store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)
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
                "1 job was skipped: its state changed, other jobs wait for it, or a job that it depends on failed",
                "1 dependent job was cancelled, too",
                "1 job is still running; its worker is stopping it",
            ]
        );
        (tally.skipped, tally.dependents, tally.ending) = (0, 0, 2);
        assert_eq!(hints(&tally), ["2 jobs are still running; their workers are stopping them"]);
    }
}
