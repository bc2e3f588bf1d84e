//! What the verbs that change jobs by id have in common: all ids are tried, each is answered, the highest exit code
//! is returned.

use std::io::Write;
use std::process::ExitCode;

use super::context::Context;
use super::failure::{Exit, Failure, report};
use super::text::printable;
use crate::domain::job::Job;
use crate::domain::name::JobId;
use crate::ops::OpError;
use crate::ops::change::{Changed, Verb, change, remove_logs};
use crate::ops::json::JobJson;
use crate::store::Store;
use crate::sys::user;

/// Changes these jobs and says what became of each; `say` words it for a person. Returns the worst failure.
pub(super) fn change_ids(
    context: &Context,
    store: &dyn Store,
    verb: Verb,
    ids: &[JobId],
    say: impl Fn(&Changed) -> String,
) -> Result<Option<Exit>, Failure> {
    let answers = change(store, verb, ids, &user::name())?;
    let mut worst = None;
    let mut done = Vec::new();
    for answer in answers {
        match answer {
            Ok(changed) => done.push(changed),
            Err(error) => worst = worst.max(Some(tell(context, &error.into()))),
        }
    }
    if verb == Verb::Remove {
        remove_logs(&context.location()?.home, done.iter().map(|changed| &changed.job));
    }
    print(context, &done, say)?;
    Ok(worst)
}

/// The exit code of a run in which this was the worst that happened.
pub(super) fn code_of(worst: Option<Exit>) -> ExitCode {
    worst.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Reports a failure that does not end the run.
pub(super) fn tell(context: &Context, failure: &Failure) -> Exit {
    report(failure, context.json, context.color);
    failure.exit
}

fn print(context: &Context, done: &[Changed], say: impl Fn(&Changed) -> String) -> Result<(), Failure> {
    if context.json {
        let jobs: Vec<JobJson<'_>> = done.iter().map(|changed| JobJson::from(&changed.job)).collect();
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
pub(super) fn find(store: &dyn Store, id: &JobId) -> Result<Job, Failure> {
    Ok(store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?)
}
