//! Editing a job that is not running.

use crate::OpError;
use domain::job::Job;
use domain::job::edit::{Edit, EditError};
use domain::job::handle::JobHandle;
use domain::values::name::JobId;
use store::{AfterEdit, Change, Store};

/// Whether the edit makes sense for this job.
pub fn check(edit: &Edit, job: &Job) -> Result<(), OpError> {
    if edit.set.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
        return Err(OpError::RelativeFolder);
    }
    // The store reports a job that it holds in an invalid form.
    match edit.apply(job) {
        Err(error @ EditError::Spec(_)) => Err(error.into()),
        Err(EditError::Fixed { .. } | EditError::Nothing | EditError::Malformed(_)) | Ok(_) => Ok(()),
    }
}

/// Edits a job and returns its new version.
pub fn edit(store: &dyn Store, id: &JobId, edit: &Edit, then: AfterEdit, by: &str) -> Result<Job, OpError> {
    if edit.is_empty() && then == AfterEdit::Keep {
        return Err(EditError::Nothing.into());
    }
    let before = store.find(id)?;
    if let Some(job) = &before {
        check(edit, job)?;
    }
    match store.edit(id, edit, then, by)? {
        Change::Done(_) => store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone())),
        Change::NotFound => Err(OpError::NoSuchJob(id.clone())),
        Change::Conflict(conflict) => {
            let job = JobHandle { id: id.clone(), number: before.map(|job| job.number) };
            Err(OpError::Conflict { job, refused: "edited", conflict })
        }
    }
}
