//! Running a job again.

use std::collections::HashSet;

use super::dependencies::{self, Parent};
use super::jobs::apply;
use super::row::{self, JobRow};
use super::tx::Tx;
use super::{events, settings, unique_keys};
use crate::domain::job::Latest;
use crate::domain::life::{Event, transition};
use crate::domain::name::JobId;
use crate::store::{Change, Conflict, StoreError};

/// How many jobs are followed in search of a cycle. One that is longer does no harm: nobody waits for a job that is
/// finished, so what it waits for when it begins again cannot wait for it.
const MOST_FOLLOWED: usize = 10_000;

pub(super) fn retry(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Change, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => retry_job(tx, &job, by),
        None => Ok(Change::NotFound),
    }
}

pub(super) fn retry_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Change, StoreError> {
    let state = job.life.state.name();
    let blockers = unfinished_parents(tx, job.seq)?;
    let cycle = cycle(tx, &job.id, &blockers)?;
    let event = Event::Retry { blocked_by: u32::try_from(blockers.len()).unwrap_or(u32::MAX) };
    let policy = settings::policy(tx, job)?;
    let Ok(retried) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(Change::Conflict(Conflict::State(state)));
    };
    if let Some(cycle) = cycle {
        return Ok(Change::Conflict(cycle));
    }
    if let Some(conflict) = unique_keys::take_again(tx, job)? {
        return Ok(Change::Conflict(conflict));
    }
    let latest = Latest { error: None, ..job.latest.clone() };
    if !apply(tx, job, &retried, &latest)? {
        return Ok(Change::Conflict(Conflict::State(state)));
    }
    dependencies::release_rest(tx, job.seq)?;
    for blocker in blockers {
        dependencies::add(tx, blocker.seq, job.seq, true)?;
    }
    events::note(tx, Some(job.seq), "retry", by, None)?;
    Ok(Change::Done(retried.life.state.name()))
}

/// What it depends on and is not finished now. A dependency that failed does not hold a job that somebody wants run.
fn unfinished_parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<Blocker>, StoreError> {
    let mut unfinished = Vec::new();
    for id in dependencies::parents(tx, seq)? {
        match dependencies::look_up(tx, &id)? {
            Parent::Unfinished { seq } => unfinished.push(Blocker { id, seq }),
            Parent::Unknown | Parent::Finished { .. } => {}
        }
    }
    Ok(unfinished)
}

struct Blocker {
    id: JobId,
    seq: i64,
}

/// The first of these that depends on the job, itself or through others that are not finished: one that was removed may
/// have come back with other dependencies than it had. Whoever wants both run has to say which goes first.
fn cycle(tx: &Tx<'_>, job: &JobId, blockers: &[Blocker]) -> Result<Option<Conflict>, StoreError> {
    for blocker in blockers {
        let mut seen = HashSet::from([blocker.seq]);
        let mut open = vec![blocker.seq];
        while let Some(seq) = open.pop() {
            for parent in dependencies::parents(tx, seq)? {
                if parent == *job {
                    return Ok(Some(Conflict::Cycle { through: blocker.id.clone() }));
                }
                if let Parent::Unfinished { seq } = dependencies::look_up(tx, &parent)?
                    && seen.len() < MOST_FOLLOWED
                    && seen.insert(seq)
                {
                    open.push(seq);
                }
            }
        }
    }
    Ok(None)
}
