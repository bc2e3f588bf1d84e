//! Cancelling a job.

use crate::sqlite::jobs::apply;
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{events, settings};
use crate::{Change, Conflict, StoreError};
use domain::job::life::{Event, transition};
use domain::values::name::JobId;

pub(crate) fn cancel(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Change, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => cancel_job(tx, &job, by),
        None => Ok(Change::NotFound),
    }
}

pub(crate) fn cancel_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Change, StoreError> {
    let state = job.life.state.name();
    let policy = settings::policy(tx, job)?;
    let Ok(cancelled) = transition(&job.life, Event::Cancel, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if !apply(tx, job, &cancelled, &job.latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    events::record(tx, Some(job.seq), "cancel", by, None)?;
    Ok(Change::Done(cancelled.life.state.name()))
}
