//! Retrying a job.
//!
//! **Jobs never wait for each other in a cycle**, and no search is needed to ensure that. A job starts to wait for
//! another on two occasions only: when it is enqueued or imported, and when it is retried after it finished. On the
//! first, no other job waits for it, except jobs of the same call, and the store searches these for a cycle. On the
//! second, no job waits for it either: it was finished, and its dependents were unblocked before this transaction
//! ([`dependencies::has_pending_unblock`]). A job that no other waits for closes no cycle. A `failed` job is not
//! finished, and others do wait for it; so a retry gives it nothing to wait for. Its dependencies were met when it
//! first ran.
//!
//! A contradiction remains that a person should resolve: job `b` depends on `a`, `a` was removed and enqueued again
//! with a dependency on `b`, and now `b` is retried while `a` waits. This is refused. It can only happen if a job
//! depends on a job that came later under the id of a removed one, and such a dependency has no link yet: [`Links`] are
//! created when a job is enqueued and deleted when one of the two jobs is removed. So a retry examines its own links,
//! and follows the dependencies of others only for links that it lacks. The retries of one transaction share the
//! search.
//!
//! [`Links`]: dependencies::is_linked

use std::collections::HashSet;

use crate::rows::jobs::apply;
use crate::rows::jobs::dependencies;
use crate::rows::jobs::dependencies::Parent;
use crate::rows::jobs::row;
use crate::rows::jobs::row::JobRow;
use crate::rows::jobs::unique_keys;
use crate::rows::keys::JobSeq;
use crate::rows::tables::{events, settings};
use crate::rows::tx::Tx;
use crate::{Change, Conflict, Result};
use domain::job::life::{Event, StateName, transition};
use domain::job::{LatestAttempt, OnDependencyFailure};
use domain::plan::consequences::End;
use domain::values::name::JobId;

/// How many dependencies a transaction follows in search of a contradiction. One that is further away does no harm: the
/// jobs run in the order in which they wait.
const MAX_DEPENDENCIES_FOLLOWED: usize = 4_000;

/// As [`retry`], for one of many jobs. A caller retries these in several transactions, dependencies first, so that the
/// others wait for them. If a dependency has failed again between two of these, the job must not run without it.
pub(crate) fn retry_in_order(tx: &mut Tx<'_>, job: &JobRow, by: &str) -> Result<Option<Change>> {
    match failed_parent(tx, job)? {
        Some((dependency, state)) => {
            Ok(Some(Change::Conflict(Conflict::DependencyFailed { dependency, state })))
        }
        None => retry(tx, job, by),
    }
}

/// A dependency without which the job must not run, and which is dead or cancelled.
fn failed_parent(tx: &mut Tx<'_>, job: &JobRow) -> Result<Option<(JobId, StateName)>> {
    let state = job.life.state.name();
    let needs_them = match job.options.on_dependency_failure() {
        OnDependencyFailure::Cancel => state.is_finished(),
        OnDependencyFailure::Run => false,
    };
    if !needs_them {
        return Ok(None);
    }
    let parents = dependencies::parents(tx, job.seq)?;
    tx.spend(parents.len());
    for id in parents {
        let Parent::Finished { end: End::Failure, .. } = dependencies::look_up(tx, &id)? else {
            continue;
        };
        if let Some(parent) = row::by_id(tx, &id)? {
            return Ok(Some((id, parent.life.state.name())));
        }
    }
    Ok(None)
}

/// `None` if dependents of its last run must be unblocked first, in transactions of their own.
pub(crate) fn retry(tx: &mut Tx<'_>, job: &JobRow, by: &str) -> Result<Option<Change>> {
    let state = job.life.state.name();
    let parents = if state.is_finished() { existing_parents(tx, job.seq)? } else { Vec::new() };
    tx.spend(parents.len());
    let blockers = parents.iter().filter(|parent| parent.is_unfinished).count();
    let event = Event::Retry { blocked_by: u32::try_from(blockers).unwrap_or(u32::MAX) };
    let policy = settings::policy(tx, job)?;
    let Ok(retried) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    };
    if dependencies::has_pending_unblock(tx, job.seq)? {
        return Ok(None);
    }
    if let Some(through) = contradiction(tx, job.seq, &parents)? {
        return Ok(Some(Change::Conflict(Conflict::Cycle { through })));
    }
    if let Some(conflict) = unique_keys::take_again(tx, job)? {
        return Ok(Some(Change::Conflict(conflict)));
    }
    let latest = LatestAttempt { error: None, ..job.latest.clone() };
    if !apply(tx, job, &retried, &latest)? {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    }
    for parent in parents.iter().filter(|parent| parent.is_unfinished || !parent.is_linked) {
        dependencies::add(tx, parent.seq, job.seq, parent.is_unfinished)?;
    }
    events::record(tx, Some(job.seq), "retry", by, None)?;
    Ok(Some(Change::Done(retried.life.state.name())))
}

/// A dependency of the job to retry.
struct ParentJob {
    id: JobId,
    seq: JobSeq,
    /// A failed dependency does not block a retried job.
    is_unfinished: bool,
    /// Whether it existed when the job was enqueued, or the job has waited for it since.
    is_linked: bool,
}

/// The dependencies of a job that still exist.
fn existing_parents(tx: &Tx<'_>, seq: JobSeq) -> Result<Vec<ParentJob>> {
    let mut existing = Vec::new();
    for id in dependencies::parents(tx, seq)? {
        let (parent_seq, is_unfinished) = match dependencies::look_up(tx, &id)? {
            Parent::Unknown => continue,
            Parent::Unfinished { seq } => (seq, true),
            Parent::Finished { seq, .. } => (seq, false),
        };
        let is_linked = dependencies::is_linked(tx, parent_seq, seq)?;
        existing.push(ParentJob { id, seq: parent_seq, is_unfinished, is_linked });
    }
    Ok(existing)
}

/// The first dependency that the job would wait for and that itself depends on the job, directly or through unfinished
/// jobs.
fn contradiction(tx: &mut Tx<'_>, seq: JobSeq, parents: &[ParentJob]) -> Result<Option<JobId>> {
    for parent in parents.iter().filter(|parent| parent.is_unfinished) {
        let depends_on_it = dependencies::is_linked(tx, seq, parent.seq)?
            || (!parent.is_linked && DependencySearch::reaches(tx, parent.seq, seq)?);
        if depends_on_it {
            return Ok(Some(parent.id.clone()));
        }
    }
    Ok(None)
}

/// The jobs that the searches of one transaction have visited.
#[derive(Debug, Default)]
pub(crate) struct DependencySearch {
    /// Jobs whose dependencies were all followed.
    visited: HashSet<JobSeq>,
    /// The dependencies of these jobs.
    reached: HashSet<JobSeq>,
    /// How many dependencies were followed.
    steps: usize,
}

impl DependencySearch {
    /// Whether a job depends on another, directly or through unfinished jobs.
    pub(crate) fn reaches(tx: &mut Tx<'_>, from: JobSeq, wanted: JobSeq) -> Result<bool> {
        let mut search = std::mem::take(&mut tx.dependency_search);
        let reached = search.search(tx, from, wanted);
        tx.dependency_search = search;
        reached
    }

    fn search(&mut self, tx: &mut Tx<'_>, from: JobSeq, wanted: JobSeq) -> Result<bool> {
        if self.reached.contains(&wanted) {
            // An earlier search has passed it, perhaps on another path.
            *self = Self { steps: self.steps, ..Self::default() };
        }
        let mut open = vec![from];
        while let Some(seq) = open.pop() {
            if !self.visited.insert(seq) {
                continue;
            }
            for id in dependencies::parents(tx, seq)? {
                if self.steps >= MAX_DEPENDENCIES_FOLLOWED {
                    return Ok(false);
                }
                self.steps += 1;
                tx.spend(1);
                let parent = match dependencies::look_up(tx, &id)? {
                    Parent::Unknown => continue,
                    Parent::Finished { seq, .. } => seq,
                    Parent::Unfinished { seq } => {
                        open.push(seq);
                        seq
                    }
                };
                if parent == wanted {
                    return Ok(true);
                }
                self.reached.insert(parent);
            }
        }
        Ok(false)
    }
}
