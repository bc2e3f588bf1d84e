//! Ending a job that nobody wants any more.

use super::jobs::apply;
use super::tx::Tx;
use super::{events, row, settings};
use crate::domain::life::{Event, transition};
use crate::domain::name::JobId;
use crate::store::{Change, Conflict, StoreError};

pub(super) fn cancel(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Change, StoreError> {
    let Some(job) = row::by_id(tx, id)? else {
        return Ok(Change::NotFound);
    };
    let state = job.life.state.name();
    let policy = settings::policy(tx, &job)?;
    let Ok(cancelled) = transition(&job.life, Event::Cancel, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if !apply(tx, &job, &cancelled, &job.latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    events::note(tx, Some(job.seq), "cancel", by, None)?;
    Ok(Change::Done(cancelled.life.state.name()))
}
