//! `PATCH /jobs/ID`, and the changes of a retry.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::change::change;
use crate::doors::scope::Scope;
use crate::problem::Problem;
use crate::request::answer::Answer;
use crate::request::call::Call;
use crate::request::query::encode;
use domain::job::edit::Edit;
use domain::job::spec::JobSpec;
use ops::OpError;
use ops::jobs::change::Verb;
use ops::jobs::clone::clone as clone_job;
use ops::jobs::edit as ops_edit;
use ops::json::{JobJson, RecordJson};
use store::AfterEdit;

/// The fields of a job to change. Null returns a field to its default, and removes a variable from `env`.
pub(in crate::routes) type Fields = Map<String, Value>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    edit: Option<Fields>,
}

pub(super) fn edit(call: &Call<'_>) -> Result<Answer, Problem> {
    let (id, edit) = (call.job()?, parse(call.body()?)?);
    let store = call.store()?;
    ops_edit::edit(store, &id, &edit, AfterEdit::Keep, call.by())?;
    let record = store.record(&id)?.ok_or(OpError::NoSuchJob(id))?;
    Answer::json(&RecordJson::from(&record))
}

pub(super) fn retry(call: &Call<'_>) -> Result<Answer, Problem> {
    let request: Retry = call.body_or_default()?;
    let Some(fields) = request.edit else {
        return Answer::json(&JobJson::from(&change(call, Verb::Retry)?.job));
    };
    // A changed command is a new command.
    call.require(Scope::Admin)?;
    let (id, edit) = (call.job()?, parse(fields)?);
    let job = ops_edit::edit(call.store()?, &id, &edit, AfterEdit::Retry, call.by())?;
    Answer::json(&JobJson::from(&job))
}

/// The copy gets the environment and the standard input of the job, which the client never sees.
pub(super) fn clone(call: &Call<'_>) -> Result<Answer, Problem> {
    let (id, edit) = (call.job()?, parse(call.body_or_default()?)?);
    let store = call.store()?;
    let copy = clone_job(store, &id, &edit)?;
    store.note("clone", call.by(), &format!("{id} as {}", copy.id))?;
    let path = call.path(&format!("/jobs/{}", encode(copy.id.as_str())));
    Ok(Answer::json(&JobJson::from(&copy))?.with_status(StatusCode::CREATED).at(&path))
}

pub(in crate::routes) fn parse(mut fields: Fields) -> Result<Edit, Problem> {
    let mut unset_env = Vec::new();
    if let Some(Value::Object(env)) = fields.get_mut("env") {
        let removed = env.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone());
        unset_env.extend(removed);
        env.retain(|_, value| !value.is_null());
    }
    let is_reset = |name: &str| fields.get(name).is_some_and(Value::is_null);
    let reset: Vec<&'static str> =
        JobSpec::field_names().iter().copied().filter(|name| is_reset(name)).collect();
    fields.retain(|name, _| !reset.contains(&name.as_str()));
    let text = Value::Object(fields).to_string();
    let set = JobSpec::from_json_without_command(&text).map_err(OpError::from)?;
    Ok(Edit::new(set, reset, unset_env).map_err(OpError::from)?)
}
