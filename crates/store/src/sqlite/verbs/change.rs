//! Changing many jobs, a portion in each transaction.

use super::{cancel, remove, retry};
use crate::sqlite::session::row;
use crate::sqlite::session::tx::Tx;
use crate::{Change, Conflict, JobVerb, Seen, StoreError};
use domain::values::name::JobId;

/// Changes the first of these, as many as this transaction's portion holds. `change` gives nothing where more has to be
/// done to a job than one transaction should do: the rest, that job included, is for the next.
pub(crate) fn changed<T>(
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

/// One that has moved on since it was seen is not what was meant.
pub(crate) fn as_seen(
    tx: &Tx<'_>,
    verb: JobVerb,
    seen: &Seen,
    by: &str,
) -> Result<Option<Change>, StoreError> {
    let Some(job) = row::by_number(tx, seen.number)? else {
        return Ok(Some(Change::NotFound));
    };
    let state = job.life.state.name();
    if state != seen.state {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    }
    match verb {
        JobVerb::Cancel => cancel::cancel_job(tx, &job, by).map(Some),
        JobVerb::Retry => retry::retry_job(tx, &job, by),
        JobVerb::Remove => remove::remove_job(tx, &job, by),
    }
}
