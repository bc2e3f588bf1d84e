//! Enqueuing a copy of a job.

use std::sync::Arc;

use super::edit::check;
use super::enqueue::with_ids;
use crate::OpError;
use domain::job::edit::Edit;
use domain::job::options::{AttemptRequests, JobOptions};
use domain::job::{Job, NewJob, Start};
use domain::values::name::{JobId, JobIdSequence};
use store::Store;

/// Enqueues a new job like this one, with some fields changed, and returns it. It gets the environment and the standard
/// input of the original, which no caller sees. It waits for no other job and belongs to no batch, schedule or unique key:
/// these are relations of the original.
pub fn clone(store: &dyn Store, id: &JobId, edit: &Edit) -> Result<Job, OpError> {
    let original = store.find(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    check(edit, &original)?;
    let inputs = store.inputs(id)?.ok_or_else(|| OpError::NoSuchJob(id.clone()))?;
    let edited = edit.apply(&original)?;
    let copy = NewJob {
        id: JobIdSequence::default().next(store.now()?, fastrand::u64(..)),
        command: edited.command,
        queue: edited.queue,
        priority: edited.priority,
        max_retries: edit.set.retries()?.unwrap_or(original.life.max_retries),
        timeout: edited.timeout,
        start: edit.set.start()?.unwrap_or(Start::Now),
        depends_on: Vec::new(),
        unique_key: None,
        cwd: edited.cwd,
        environment: inputs.environment,
        tags: edited.tags,
        options: JobOptions { reported: None, requests: AttemptRequests::default(), ..edited.options },
        stdin: inputs.stdin.map(Arc::from),
        batch: None,
        if_absent: false,
    };
    store
        .enqueue(std::slice::from_ref(&copy))
        .map_err(|error| with_ids(error, std::slice::from_ref(&copy)))?;
    store.find(&copy.id)?.ok_or(OpError::NoSuchJob(copy.id))
}
