//! Running a job again.

use super::dependencies::{self, Parent};
use super::jobs::apply;
use super::row::{self, JobRow, strings};
use super::tx::Tx;
use super::{events, settings, unique_keys};
use crate::domain::job::Latest;
use crate::domain::life::{Event, transition};
use crate::domain::name::JobId;
use crate::store::{Change, Conflict, StoreError};

pub(super) fn retry(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Change, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => retry_job(tx, &job, by),
        None => Ok(Change::NotFound),
    }
}

pub(super) fn retry_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Change, StoreError> {
    let state = job.life.state.name();
    let blockers = unfinished_parents(tx, job.seq)?;
    let event = Event::Retry { blocked_by: u32::try_from(blockers.len()).unwrap_or(u32::MAX) };
    let policy = settings::policy(tx, job)?;
    let Ok(retried) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if let Some(conflict) = take_key_again(tx, job)? {
        return Ok(Change::Conflict(conflict));
    }
    let latest = Latest { error: None, ..job.latest.clone() };
    if !apply(tx, job, &retried, &latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    dependencies::release_rest(tx, job.seq)?;
    for parent_seq in blockers {
        dependencies::add(tx, parent_seq, job.seq)?;
    }
    events::note(tx, Some(job.seq), "retry", by, None)?;
    Ok(Change::Done(retried.life.state.name()))
}

/// A finished job gave its unique key back; another may have taken it since.
fn take_key_again(tx: &Tx<'_>, job: &JobRow) -> Result<Option<Conflict>, StoreError> {
    let Some(key) = &job.unique_key else {
        return Ok(None);
    };
    match unique_keys::holder(tx, key)? {
        Some(holder) if holder == job.id => Ok(None),
        Some(holder) => Ok(Some(Conflict::KeyTaken { holder })),
        None => unique_keys::take(tx, key, job.seq).map(|()| None),
    }
}

/// What it depends on and is not finished now. A dependency that failed does not hold a job that somebody wants run.
fn unfinished_parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<i64>, StoreError> {
    let json: Option<String> =
        tx.prepare("select depends_on from jobs where seq = ?1")?.query_row([seq], |row| row.get(0))?;
    let mut unfinished = Vec::new();
    for id in strings(json.as_deref())? {
        let id = id.parse().map_err(|error| row::malformed("depends_on", error))?;
        match dependencies::look_up(tx, &id)? {
            Parent::Unfinished { seq } => unfinished.push(seq),
            Parent::Unknown | Parent::Finished { .. } => {}
        }
    }
    Ok(unfinished)
}
