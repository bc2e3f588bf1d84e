//! Changes of one job that bring in no new command.

use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use ops::OpError;
use ops::jobs::change::{ChangeResults, ChangedJob, Verb, change_ids, remove_logs};
use ops::json::ChangedJobJson;

/// Changes the job in the path.
pub(super) fn change(call: &Call<'_>, verb: Verb) -> Result<ChangedJob, Problem> {
    let id = call.job()?;
    let ChangeResults { jobs, stopped, .. } =
        change_ids(call.store()?, verb, std::slice::from_ref(&id), call.by());
    match (stopped, jobs.into_iter().next()) {
        (Some(error), _) | (None, Some(Err(error))) => Err(error.into()),
        (None, Some(Ok(changed))) => Ok(changed),
        (None, None) => Err(OpError::NoSuchJob(id).into()),
    }
}

fn changed(call: &Call<'_>, verb: Verb) -> Result<Answer, Problem> {
    Answer::json(&ChangedJobJson::new(&change(call, verb)?, verb))
}

pub(super) fn cancel(call: &Call<'_>) -> Result<Answer, Problem> {
    changed(call, Verb::CANCEL)
}

pub(super) fn pause(call: &Call<'_>) -> Result<Answer, Problem> {
    changed(call, Verb::Pause)
}

pub(super) fn resume(call: &Call<'_>) -> Result<Answer, Problem> {
    changed(call, Verb::Resume)
}

pub(super) fn remove(call: &Call<'_>) -> Result<Answer, Problem> {
    let removed = change(call, Verb::Remove)?;
    remove_logs(&call.server.options.location.home, std::iter::once(&removed.job));
    Ok(Answer::empty())
}
