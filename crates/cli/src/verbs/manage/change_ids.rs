//! Changes jobs by id. Every id is tried, every result is reported, and the highest exit code is returned.

use std::io::Write;
use sys::program::ExitCode;

use serde::Serialize;

use crate::context::Context;
use crate::failure::{Exit, Failure, report};
use crate::render::text::{grouped, jobs, printable};
use domain::job::Job;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::change::{ChangeResults, ChangedJob, Verb, change, remove_logs};
use ops::json::JobJson;
use store::Store;
use sys::process::user;

/// At most this many cancelled dependents are listed.
const MAX_NAMED_DEPENDENTS: usize = 10;

/// Changes these jobs and reports each result; `say` is the sentence for a person. Returns the worst failure.
pub(crate) fn change_ids(
    context: &Context,
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
    say: impl Fn(&ChangedJob) -> String,
) -> Result<Option<Exit>, Failure> {
    let ChangeResults { jobs, stopped, .. } = change(store, verb, ids, &user::name());
    let mut worst = None;
    let mut done = Vec::new();
    for answer in jobs {
        match answer {
            Ok(changed) => done.push(changed),
            Err(error) => worst = worst.max(Some(report_and_continue(context, &error.into()))),
        }
    }
    if verb == Verb::Remove {
        remove_logs(&context.location()?.home, done.iter().map(|changed| &changed.job));
    }
    if stopped.is_none() || !done.is_empty() {
        print(context, verb, &done, say)?;
    }
    hint_dependents(context, &done)?;
    stopped.map_or(Ok(worst), |error| Err(error.into()))
}

/// Lists cancelled dependents on standard error if the results, for a program, do not mention them.
fn hint_dependents(context: &Context, done: &[ChangedJob]) -> Result<(), Failure> {
    if !context.json && !context.stdout_is_terminal {
        for changed in done.iter().filter(|changed| !changed.dependents.is_empty()) {
            let (of, named) = (&changed.job.id, describe_dependents(&changed.dependents));
            context.hint(&printable(&format!("cancelled with job {of}: {named}")))?;
        }
    }
    if done.iter().any(|changed| changed.leaves_dependents) {
        context.hint("workers are cancelling more jobs that depend on these")?;
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

/// The exit code for the worst failure.
pub(crate) fn code_of(worst: Option<Exit>) -> ExitCode {
    worst.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Reports a failure that does not end the command.
pub(crate) fn report_and_continue(context: &Context, failure: &Failure) -> Exit {
    report(failure, context.json, context.color);
    failure.exit
}

/// A job and, if it was cancelled, the dependents that were cancelled with it.
#[derive(Serialize)]
struct ChangedJson<'a> {
    #[serde(flatten)]
    job: JobJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_dependents: Option<Vec<&'a str>>,
}

impl<'a> ChangedJson<'a> {
    fn new(verb: Verb, changed: &'a ChangedJob) -> Self {
        let names = || changed.dependents.iter().map(JobId::as_str).collect();
        Self { job: JobJson::from(&changed.job), cancelled_dependents: (verb == Verb::Cancel).then(names) }
    }
}

fn print(
    context: &Context,
    verb: Verb,
    done: &[ChangedJob],
    say: impl Fn(&ChangedJob) -> String,
) -> Result<(), Failure> {
    if context.json {
        let jobs: Vec<ChangedJson<'_>> = done.iter().map(|changed| ChangedJson::new(verb, changed)).collect();
        return context.print_json(&jobs);
    }
    if context.quiet {
        return Ok(());
    }
    let mut out = context.out();
    for changed in done {
        if context.stdout_is_terminal {
            writeln!(out, "{}", printable(&say(changed)))?;
        } else {
            writeln!(out, "{}", changed.job.id)?;
        }
    }
    Ok(out.flush()?)
}

/// The job with this id, or exit 3.
pub(crate) fn find(store: &dyn Store, id: &JobId) -> Result<Job, Failure> {
    Ok(store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)
}
