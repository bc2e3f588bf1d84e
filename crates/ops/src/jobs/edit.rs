//! Editing a job that is not running.

use serde_json::{Map, Value, json};

use crate::OpError;
use crate::json::backoff_json;
use domain::job::Job;
use domain::job::edit::{Edit, EditError};
use domain::values::name::JobId;
use domain::values::span::format_span;
use store::{AfterEdit, Change, Store};

/// Edits a job and returns its new version.
pub fn edit(store: &dyn Store, id: &JobId, edit: &Edit, then: AfterEdit, by: &str) -> Result<Job, OpError> {
    if edit.is_empty() && then == AfterEdit::Keep {
        return Err(EditError::Nothing.into());
    }
    if edit.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(OpError::RelativeFolder);
    }
    if let Some(job) = store.find(id)? {
        edit.retry(&job.retry)?;
    }
    match store.edit(id, edit, then, by)? {
        Change::Done(_) => store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone())),
        Change::NotFound => Err(OpError::NoSuchJob(id.clone())),
        Change::Conflict(conflict) => Err(OpError::Conflict { id: id.clone(), conflict }),
    }
}

/// The editable fields of a job, in the JSON form that `enqueue` accepts. Environment variables are omitted, because their
/// values are secret.
pub fn editable(job: &Job) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("command", json!(job.command));
    put("queue", json!(job.queue.as_str()));
    put("priority", json!(job.priority));
    put("max_retries", json!(job.life.max_retries));
    put("timeout", json!(job.timeout.map_or_else(|| "none".to_owned(), format_span)));
    if let Some(run_at) = job.life.run_at {
        put("run_at", json!(run_at.to_string()));
    }
    if let Some(backoff) = &job.backoff {
        put("backoff", backoff_json(backoff));
    }
    if let Some(cwd) = &job.cwd {
        put("cwd", json!(cwd));
    }
    put("tags", json!(job.tags));
    if !job.depends_on.is_empty() {
        put("on_dependency_failure", json!(job.on_dependency_failure.name()));
    }
    if !job.limits.is_none() {
        put("limits", json!(job.limits));
    }
    for (name, codes) in [("retry_on", job.retry.retry_on), ("no_retry_on", job.retry.no_retry_on)] {
        if let Some(codes) = codes {
            put(name, json!(codes.iter().collect::<Vec<u8>>()));
        }
    }
    Value::Object(fields)
}
