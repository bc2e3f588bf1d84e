//! Changes jobs by id or by selection: the common part of `cancel`, `retry`, `remove` and `dlq`.
//!
//! By id, every job is tried, every result is reported, and the worst failure is returned. A selection is counted.

pub(crate) mod many;

use std::io::Write;
use sys::program::ExitCode;

use self::many::{MAX_PREVIEW_JOBS, ManyChange, change_selection, preview};
use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::{Exit, Failure, report};
use crate::flags::handle::NamedJobs;
use crate::flags::selection::Selection;
use crate::render::text::{grouped, jobs, printable};
use crate::verbs::jobs::autostart::autostart_if_ready;
use domain::job::Job;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::change::{ChangeResults, ChangedJob, Verb, by_state, change_ids, remove_logs};
use ops::json::ChangedJobJson;
use store::{JobRef, Store};
use sys::process::user;

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

impl Wording {
    fn for_many(&self) -> ManyChange {
        let Self { verb, infinitive, participle, .. } = *self;
        ManyChange { what: verb.into(), infinitive, participle }
    }
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
            Ok(worst.max(preview_ids(context, &ids, &wording.for_many())?))
        }
        Selection::Named(NamedJobs { ids, worst }) => {
            if wording.is_final && !args.yes && ids.len() > 1 {
                confirm(context, wording.infinitive, count_changeable(context, &ids, wording)?, false)?;
            }
            Ok(worst.max(change_each(context, &ids, wording)?))
        }
        Selection::Matching(filter) => {
            change_selection(context, *filter, args, &wording.for_many())?;
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

fn print_each(context: &Context, done: &[ChangedJob], wording: &Wording) -> Result<(), Failure> {
    if context.json {
        let jobs = done.iter().map(|changed| ChangedJobJson::new(changed, wording.verb));
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

/// Shows which of the jobs with these ids would be changed. A missing job is a failure, as in the real run.
pub(crate) fn preview_ids(
    context: &Context,
    ids: &[JobId],
    change: &ManyChange,
) -> Result<Option<Exit>, Failure> {
    let (mut seen, worst) = find_each(context, ids, |_| Ok(()))?;
    seen.retain(|seen| change.what.applies_to(seen.state));
    let store = context.store()?;
    let mut examples = Vec::new();
    for seen in seen.iter().take(MAX_PREVIEW_JOBS) {
        examples.extend(store.find(&seen.id)?);
    }
    preview(context, &by_state(&seen), &examples, change)?;
    Ok(worst)
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
