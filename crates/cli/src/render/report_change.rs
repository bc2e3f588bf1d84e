//! What the verbs that change jobs by id have in common: all ids are tried, each is answered, the highest exit code
//! is returned.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use super::text::{grouped, jobs, printable};
use crate::context::Context;
use crate::failure::{Exit, Failure, report};
use domain::job::Job;
use domain::values::name::JobId;
use ops::OpError;
use ops::jobs::change::{ChangeResults, ChangedJob, Verb, change, remove_logs};
use ops::json::JobJson;
use store::Store;
use sys::process::user;

/// How many dependents are named to a person.
const MOST_NAMED: usize = 10;

/// Changes these jobs and says what became of each; `say` words it for a person. Returns the worst failure.
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
            Err(error) => worst = worst.max(Some(tell(context, &error.into()))),
        }
    }
    if verb == Verb::Remove {
        remove_logs(&context.location()?.home, done.iter().map(|changed| &changed.job));
    }
    if stopped.is_none() || !done.is_empty() {
        print(context, verb, &done, say)?;
    }
    hint_at_dependents(context, &done)?;
    stopped.map_or(Ok(worst), |error| Err(error.into()))
}

/// Where no person reads what became of each job, its dependents are named on standard error.
fn hint_at_dependents(context: &Context, done: &[ChangedJob]) -> Result<(), Failure> {
    if !context.json && !context.person_reads {
        for changed in done.iter().filter(|changed| !changed.dependents.is_empty()) {
            let (of, named) = (&changed.job.id, named(&changed.dependents));
            context.hint(&printable(&format!("{named}: cancelled too, with job {of}")))?;
        }
    }
    if done.iter().any(|changed| changed.leaves_dependents) {
        context.hint("the workers are cancelling more jobs that depend on these")?;
    }
    Ok(())
}

/// `2 jobs that depend on it (b, c)`
pub(crate) fn named(dependents: &[JobId]) -> String {
    let count = dependents.len();
    let mut names: Vec<String> = dependents.iter().take(MOST_NAMED).map(JobId::to_string).collect();
    if count > MOST_NAMED {
        names.push(format!("and {} more", grouped((count - MOST_NAMED) as u64)));
    }
    let depend = if count == 1 { "depends" } else { "depend" };
    format!("{} that {depend} on it ({})", jobs(count as u64), names.join(", "))
}

/// The exit code of a run in which this was the worst that happened.
pub(crate) fn code_of(worst: Option<Exit>) -> ExitCode {
    worst.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Reports a failure that does not end the run.
pub(crate) fn tell(context: &Context, failure: &Failure) -> Exit {
    report(failure, context.json, context.color);
    failure.exit
}

/// A job, and where it was cancelled the jobs that were cancelled because they depend on it.
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
        if context.person_reads {
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
