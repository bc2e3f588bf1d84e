//! Ending a job that nobody wants any more.

use super::jobs::apply;
use super::row::{self, JobRow};
use super::tx::Tx;
use super::{events, settings};
use crate::domain::life::{Event, transition};
use crate::domain::name::JobId;
use crate::store::{Change, Conflict, StoreError};

pub(super) fn cancel(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Change, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => cancel_job(tx, &job, by),
        None => Ok(Change::NotFound),
    }
}

pub(super) fn cancel_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Change, StoreError> {
    let state = job.life.state.name();
    let policy = settings::policy(tx, job)?;
    let Ok(cancelled) = transition(&job.life, Event::Cancel, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if !apply(tx, job, &cancelled, &job.latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    events::note(tx, Some(job.seq), "cancel", by, None)?;
    Ok(Change::Done(cancelled.life.state.name()))
}
