//! Changing many jobs that somebody selected a moment ago.

use super::tx::Tx;
use super::{cancel, remove, retry, row};
use crate::store::{Change, Conflict, JobVerb, Seen, StoreError};

/// One that has moved on since it was seen is not what was meant.
pub(super) fn change(tx: &Tx<'_>, verb: JobVerb, seen: &Seen, by: &str) -> Result<Change, StoreError> {
    let Some(job) = row::by_number(tx, seen.number)? else {
        return Ok(Change::NotFound);
    };
    let state = job.life.state.name();
    if state != seen.state {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    match verb {
        JobVerb::Cancel => cancel::cancel_job(tx, &job, by),
        JobVerb::Retry => retry::retry_job(tx, &job, by),
        JobVerb::Remove => remove::remove_job(tx, &job, by),
    }
}
