//! Changing many jobs, a portion in each transaction.

use super::{cancel, remove, retry};
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Change, Conflict, JobRef, JobVerb, StoreError};
use domain::values::name::JobId;

/// Changes the first of these, as many as this transaction's portion allows. `change` returns `None` if a job needs
/// more work than fits into one transaction: then this job and the rest are left to the next call.
pub(crate) fn change_portion<T>(
    tx: &Tx<'_>,
    jobs: &[T],
    change: impl Fn(&Tx<'_>, &T) -> Result<Option<Change>, StoreError>,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    for job in jobs {
        if tx.is_spent() {
            break;
        }
        tx.spend_job();
        let Some(change) = change(tx, job)? else {
            break;
        };
        changes.push(change);
    }
    Ok(changes)
}

pub(crate) fn by_id(tx: &Tx<'_>, verb: JobVerb, id: &JobId, by: &str) -> Result<Option<Change>, StoreError> {
    match verb {
        JobVerb::Cancel => cancel::cancel(tx, id, by).map(Some),
        JobVerb::Retry => retry::retry(tx, id, by),
        JobVerb::Remove => remove::remove(tx, id, by),
    }
}

/// Changes a selected job, unless its state has changed since it was selected.
pub(crate) fn if_unchanged(
    tx: &Tx<'_>,
    verb: JobVerb,
    selected: &JobRef,
    by: &str,
) -> Result<Option<Change>, StoreError> {
    let Some(job) = row::by_number(tx, selected.number)? else {
        return Ok(Some(Change::NotFound));
    };
    let state = job.life.state.name();
    if state != selected.state {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    }
    match verb {
        JobVerb::Cancel => cancel::cancel_job(tx, &job, by).map(Some),
        JobVerb::Retry => retry::retry_job(tx, &job, by),
        JobVerb::Remove => remove::remove_job(tx, &job, by),
    }
}
