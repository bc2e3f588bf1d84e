//! Cancelling a job.

use crate::rows::jobs::apply;
use crate::rows::jobs::requests;
use crate::rows::jobs::row::JobRow;
use crate::rows::tables::{events, settings};
use crate::rows::tx::Tx;
use crate::{Change, Conflict, Result};
use domain::job::life::{Event, transition};
use domain::values::signal::Signal;

pub(crate) fn cancel(tx: &mut Tx<'_>, job: &JobRow, signal: Option<Signal>, by: &str) -> Result<Change> {
    let state = job.life.state.name();
    let policy = settings::policy(tx, job)?;
    let Ok(cancelled) = transition(&job.life, Event::Cancel { signal }, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if !apply(tx, job, &cancelled, &job.latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    requests::store(tx, job, &cancelled.life)?;
    events::record(tx, Some(job.seq), "cancel", by, None)?;
    Ok(Change::Done(cancelled.life.state.name()))
}
