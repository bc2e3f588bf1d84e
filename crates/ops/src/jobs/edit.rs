//! Editing a job that is not running.

use crate::OpError;
use domain::job::Job;
use domain::job::edit::{Edit, EditError};
use domain::values::name::JobId;
use store::{AfterEdit, Change, Store};

/// Edits a job and returns its new version.
pub fn edit(store: &dyn Store, id: &JobId, edit: &Edit, then: AfterEdit, by: &str) -> Result<Job, OpError> {
    if edit.is_empty() && then == AfterEdit::Keep {
        return Err(EditError::Nothing.into());
    }
    if edit.set.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(OpError::RelativeFolder);
    }
    // The store reports a job that it holds in an invalid form.
    if let Some(job) = store.find(id)?
        && let Err(error @ EditError::Spec(_)) = edit.apply(&job)
    {
        return Err(error.into());
    }
    match store.edit(id, edit, then, by)? {
        Change::Done(_) => store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone())),
        Change::NotFound => Err(OpError::NoSuchJob(id.clone())),
        Change::Conflict(conflict) => Err(OpError::Conflict { id: id.clone(), conflict }),
    }
}
