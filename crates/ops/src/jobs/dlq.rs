//! The dead-letter queue, grouped by cause of death.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::OpError;
use crate::error::Named;
use domain::job::cause::{Cause, CauseId};
use domain::values::name::{JobId, QueueName};
use domain::values::timestamp::Timestamp;
use store::{DeadJob, JobFilter, JobRef, Store, StoreError};

/// How many dead jobs are read at once.
const CHUNK: usize = 10_000;

/// Dead jobs that died of the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseGroup {
    #[serde(rename = "cause")]
    pub id: CauseId,
    pub reason: String,
    pub exit_code: Option<i32>,
    /// Its name.
    pub signal: Option<String>,
    /// The error line with numbers, paths and other variable parts masked.
    pub message: String,
    pub count: u64,
    pub queues: BTreeSet<QueueName>,
    pub last_at: Timestamp,
    /// The job that died last.
    pub example: JobId,
    /// Its number.
    pub number: u64,
}

/// Groups the dead jobs that match the filter, largest group first.
pub fn group_by_cause(store: &dyn Store, filter: &JobFilter) -> Result<Vec<CauseGroup>, StoreError> {
    let mut groups: BTreeMap<CauseId, CauseGroup> = BTreeMap::new();
    for_each_dead(store, filter, |cause, dead| {
        let group = groups.entry(cause.id()).or_insert_with(|| new_group(cause, &dead));
        group.count += 1;
        group.queues.insert(dead.queue);
        if dead.finished_at > group.last_at {
            group.last_at = dead.finished_at;
            (group.example, group.number) = (dead.job.id, dead.job.number);
        }
    })?;
    let mut groups: Vec<CauseGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| (Reverse(group.count), Reverse(group.last_at)));
    Ok(groups)
}

fn new_group(cause: Cause, dead: &DeadJob) -> CauseGroup {
    CauseGroup {
        id: cause.id(),
        reason: cause.reason,
        exit_code: cause.exit_code,
        signal: cause.signal.map(|signal| signal.to_string()),
        message: cause.message,
        count: 0,
        queues: BTreeSet::new(),
        last_at: dead.finished_at,
        example: dead.job.id.clone(),
        number: dead.job.number,
    }
}

/// The dead jobs that match the filter and died of one cause, newest first. The cause is named by the beginning of its
/// id, or by the number or the id of a dead job.
pub fn jobs_of_cause(store: &dyn Store, filter: &JobFilter, typed: &str) -> Result<Vec<JobRef>, OpError> {
    let mut found: BTreeMap<CauseId, Vec<JobRef>> = BTreeMap::new();
    let mut of_example = None;
    for_each_dead(store, filter, |cause, dead| {
        if dead.job.id.as_str() == typed || dead.job.number.to_string() == typed {
            of_example = Some(cause.id());
        }
        if cause.id().begins_with(typed) {
            found.entry(cause.id()).or_default().push(dead.job);
        }
    })?;
    // A few digits may be both a number and the beginning of an id.
    let is_other = |example: CauseId| !found.is_empty() && !found.contains_key(&example);
    if found.len() > 1 || of_example.is_some_and(is_other) {
        return Err(OpError::AmbiguousCause { typed: typed.to_owned() });
    }
    if let Some(jobs) = found.into_values().next() {
        return Ok(jobs);
    }
    let missing = || OpError::NoSuch { what: Named::Cause, name: typed.to_owned(), nearest: None };
    let example = of_example.ok_or_else(missing)?;
    let mut jobs = Vec::new();
    for_each_dead(store, filter, |cause, dead| {
        if cause.id() == example {
            jobs.push(dead.job);
        }
    })?;
    Ok(jobs)
}

fn for_each_dead(
    store: &dyn Store,
    filter: &JobFilter,
    mut visit: impl FnMut(Cause, DeadJob),
) -> Result<(), StoreError> {
    let mut below = None;
    loop {
        let chunk = store.select_dead(filter, below, CHUNK)?;
        let Some(last) = chunk.last() else {
            return Ok(());
        };
        below = Some(last.job.number);
        for dead in chunk {
            let error = dead.error.as_deref().unwrap_or_default();
            visit(Cause::new(dead.reason.clone(), dead.exit_code, dead.signal, error), dead);
        }
    }
}
