//! Changing many jobs, a portion in each transaction.

use super::{cancel, pause, remove, retry};
use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::keys::JobSeq;
use crate::rows::tx::Tx;
use crate::{Change, Conflict, JobVerb, Result, Targets};

/// Changes the first of these, as many as this transaction's portion allows. A job that needs more work than fits into
/// one transaction is left to the next call, with the rest.
pub(crate) fn change_portion(
    tx: &mut Tx<'_>,
    verb: JobVerb,
    targets: Targets<'_>,
    by: &str,
) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    while changes.len() < targets.len() && !tx.is_spent() {
        tx.spend_job();
        let change = match find(tx, targets, changes.len())? {
            Ok(job) => change_job(tx, verb, targets, &job, by)?,
            Err(refusal) => Some(refusal),
        };
        let Some(change) = change else {
            break;
        };
        changes.push(change);
    }
    Ok(changes)
}

/// The job at this position, unless it is gone or its state has changed since it was selected.
fn find(tx: &Tx<'_>, targets: Targets<'_>, at: usize) -> Result<Result<JobRow, Change>> {
    let (job, selected_in) = match targets {
        Targets::Ids(ids) => (row::by_id(tx, &ids[at])?, None),
        Targets::Selected(jobs) => (row::find(tx, JobSeq::of_number(jobs[at].number))?, Some(jobs[at].state)),
    };
    let Some(job) = job else {
        return Ok(Err(Change::NotFound));
    };
    let state = job.life.state.name();
    let has_changed = selected_in.is_some_and(|before| before != state);
    Ok(if has_changed { Err(Change::Conflict(Conflict::State(state))) } else { Ok(job) })
}

/// `None` if more work is needed than fits into this transaction.
fn change_job(
    tx: &mut Tx<'_>,
    verb: JobVerb,
    targets: Targets<'_>,
    job: &JobRow,
    by: &str,
) -> Result<Option<Change>> {
    match (verb, targets) {
        (JobVerb::Cancel { signal }, _) => cancel::cancel(tx, job, signal, by).map(Some),
        (JobVerb::Pause, _) => pause::pause(tx, job, by).map(Some),
        (JobVerb::Resume, _) => pause::resume(tx, job, by).map(Some),
        (JobVerb::Retry, Targets::Ids(_)) => retry::retry(tx, job, by),
        (JobVerb::Retry, Targets::Selected(_)) | (JobVerb::RetryInOrder, _) => {
            retry::retry_in_order(tx, job, by)
        }
        (JobVerb::Remove, _) => remove::remove(tx, job, by),
    }
}
