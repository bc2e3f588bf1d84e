//! Running a job again.
//!
//! **No jobs ever wait for each other in a circle**, and no search is needed for that. A job is given something to wait for
//! in two moments only: when it is enqueued or imported, and when it begins again after it was finished. In the first, no
//! other job waits for it, except jobs that come with it, and the store looks for a circle among these. In the second, no
//! job waits for it either: it was finished, and its dependents were released before this transaction
//! ([`dependencies::is_to_be_told`]). A job for which none waits closes no circle. A `failed` job is not finished, and
//! others do wait for it: so a retry gives it nothing to wait for. Its dependencies were met when it first ran.
//!
//! What is left is a contradiction that a person should resolve: job `b` depends on `a`, `a` was removed and enqueued again
//! with a dependency on `b`, and now `b` is retried while `a` waits. It is refused. That can only happen where a job takes
//! up a dependency on a job that came later under the id of a removed one, and such a one has no link yet: [`Links`] are
//! made when a job is enqueued and go when one of the two jobs is removed. So a retry looks at its own links, and follows
//! the dependencies of others only for those that it lacks. The jobs of one transaction share what they have followed.
//!
//! [`Links`]: dependencies::is_linked

use std::collections::HashSet;

use crate::sqlite::jobs::apply;
use crate::sqlite::jobs::dependencies;
use crate::sqlite::jobs::dependencies::Parent;
use crate::sqlite::jobs::unique_keys;
use crate::sqlite::session::row;
use crate::sqlite::session::row::JobRow;
use crate::sqlite::session::tx::Tx;
use crate::sqlite::tables::{events, settings};
use crate::{Change, Conflict, StoreError};
use domain::job::LatestAttempt;
use domain::job::life::{Event, transition};
use domain::values::name::JobId;

/// How many dependencies a transaction looks at in search of a contradiction. One that is further away does no harm: the
/// jobs run in the order in which they wait.
const MOST_LOOKS: usize = 4_000;

/// `None`: dependents of its last run must be released first, in transactions of their own.
pub(crate) fn retry(tx: &Tx<'_>, id: &JobId, by: &str) -> Result<Option<Change>, StoreError> {
    match row::by_id(tx, id)? {
        Some(job) => retry_job(tx, &job, by),
        None => Ok(Some(Change::NotFound)),
    }
}

/// The same.
pub(crate) fn retry_job(tx: &Tx<'_>, job: &JobRow, by: &str) -> Result<Option<Change>, StoreError> {
    let state = job.life.state.name();
    let parents = if state.is_finished() { known_parents(tx, job.seq)? } else { Vec::new() };
    tx.spend(parents.len());
    let blockers = parents.iter().filter(|parent| parent.is_unfinished).count();
    let event = Event::Retry { blocked_by: u32::try_from(blockers).unwrap_or(u32::MAX) };
    let policy = settings::policy(tx, job)?;
    let Ok(retried) = transition(&job.life, event, &policy, tx.now) else {
        return Ok(Some(Change::Conflict(Conflict::State(state))));
    };
    if dependencies::is_to_be_told(tx, job.seq)? {
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
    events::note(tx, Some(job.seq), "retry", by, None)?;
    Ok(Some(Change::Done(retried.life.state.name())))
}

/// A job that another depends on.
struct Known {
    id: JobId,
    seq: i64,
    /// A dependency that failed does not hold a job that is retried.
    is_unfinished: bool,
    /// Whether it is the one that was there when the other was enqueued, or that this has waited for since.
    is_linked: bool,
}

/// What a job depends on and is kept.
fn known_parents(tx: &Tx<'_>, seq: i64) -> Result<Vec<Known>, StoreError> {
    let mut known = Vec::new();
    for id in dependencies::parents(tx, seq)? {
        let (parent_seq, is_unfinished) = match dependencies::look_up(tx, &id)? {
            Parent::Unknown => continue,
            Parent::Unfinished { seq } => (seq, true),
            Parent::Finished { seq, .. } => (seq, false),
        };
        let is_linked = dependencies::is_linked(tx, parent_seq, seq)?;
        known.push(Known { id, seq: parent_seq, is_unfinished, is_linked });
    }
    Ok(known)
}

/// The first of those that the job would wait for and that depends on the job: itself, or through others that are not
/// finished.
fn contradiction(tx: &Tx<'_>, seq: i64, parents: &[Known]) -> Result<Option<JobId>, StoreError> {
    for parent in parents.iter().filter(|parent| parent.is_unfinished) {
        let depends_on_it = dependencies::is_linked(tx, seq, parent.seq)?
            || (!parent.is_linked && Followed::reaches(tx, parent.seq, seq)?);
        if depends_on_it {
            return Ok(Some(parent.id.clone()));
        }
    }
    Ok(None)
}

/// What the searches of one transaction have seen.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Jobs whose dependencies were all looked at.
    jobs: HashSet<i64>,
    /// The jobs that these depend on.
    named: HashSet<i64>,
    /// How many dependencies were looked at.
    looks: usize,
}

impl Followed {
    /// Whether a job depends on another, itself or through jobs that are not finished.
    pub(crate) fn reaches(tx: &Tx<'_>, from: i64, wanted: i64) -> Result<bool, StoreError> {
        let mut followed = tx.followed.borrow_mut();
        if followed.named.contains(&wanted) {
            // An earlier search has passed it, maybe on another way.
            *followed = Self { looks: followed.looks, ..Self::default() };
        }
        let mut open = vec![from];
        while let Some(seq) = open.pop() {
            if !followed.jobs.insert(seq) {
                continue;
            }
            for id in dependencies::parents(tx, seq)? {
                if followed.looks >= MOST_LOOKS {
                    return Ok(false);
                }
                followed.looks += 1;
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
                followed.named.insert(parent);
            }
        }
        Ok(false)
    }
}
