//! The dead-letter queue, grouped by cause of death.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::OpError;
use crate::error::Named;
use domain::job::cause::{Cause, CauseId};
use domain::job::life::StateName;
use domain::values::name::{JobId, QueueName};
use domain::values::timestamp::Timestamp;
use store::{CauseSummary, DeadJob, JobFilter, Phase, Store, StoreError};

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
    /// How many of them each queue has.
    #[serde(skip)]
    pub by_queue: BTreeMap<QueueName, u64>,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    /// The newest of these jobs.
    pub example: JobId,
    /// Its number.
    pub number: u64,
}

/// Groups the dead jobs that match the filter, largest group first. The store has counted them, unless the filter asks for
/// more than a queue.
pub fn group_by_cause(store: &dyn Store, filter: &JobFilter) -> Result<Vec<CauseGroup>, StoreError> {
    let of_queue =
        JobFilter { queue: filter.queue.clone(), phases: filter.phases.clone(), ..JobFilter::default() };
    if *filter == of_queue {
        let groups = causes(store, filter.queue.as_ref(), usize::MAX)?;
        let dead = JobFilter { phases: vec![Phase::State(StateName::Dead)], ..of_queue };
        // A store of an earlier version has counted none.
        if groups.iter().map(|group| group.count).sum::<u64>() == store.count(&dead, None)?.count {
            return Ok(groups);
        }
    }
    group_one_by_one(store, filter)
}

/// The causes with the most dead jobs, in one queue or in all.
pub fn causes(
    store: &dyn Store,
    queue: Option<&QueueName>,
    limit: usize,
) -> Result<Vec<CauseGroup>, StoreError> {
    Ok(store.causes(queue, limit)?.into_iter().map(CauseGroup::from).collect())
}

impl From<CauseSummary> for CauseGroup {
    fn from(summary: CauseSummary) -> Self {
        let CauseSummary { cause, count, queues, first_at, last_at, example } = summary;
        Self {
            id: cause.id(),
            reason: cause.reason,
            exit_code: cause.exit_code,
            signal: cause.signal.map(|signal| signal.to_string()),
            message: cause.message,
            count,
            queues: queues.keys().cloned().collect(),
            by_queue: queues,
            first_at,
            last_at,
            example: example.id,
            number: example.number,
        }
    }
}

fn group_one_by_one(store: &dyn Store, filter: &JobFilter) -> Result<Vec<CauseGroup>, StoreError> {
    let mut groups: BTreeMap<CauseId, CauseGroup> = BTreeMap::new();
    for_each_dead(store, filter, |cause, dead| {
        let group = groups.entry(cause.id()).or_insert_with(|| new_group(cause, &dead));
        group.count += 1;
        group.first_at = group.first_at.min(dead.finished_at);
        group.last_at = group.last_at.max(dead.finished_at);
        *group.by_queue.entry(dead.queue.clone()).or_default() += 1;
        group.queues.insert(dead.queue);
    })?;
    let mut groups: Vec<CauseGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| (Reverse(group.count), Reverse(group.last_at)));
    Ok(groups)
}

/// The jobs come from new to old, so the first one is the newest.
fn new_group(cause: Cause, dead: &DeadJob) -> CauseGroup {
    CauseGroup {
        id: cause.id(),
        reason: cause.reason,
        exit_code: cause.exit_code,
        signal: cause.signal.map(|signal| signal.to_string()),
        message: cause.message,
        count: 0,
        queues: BTreeSet::new(),
        by_queue: BTreeMap::new(),
        first_at: dead.finished_at,
        last_at: dead.finished_at,
        example: dead.job.id.clone(),
        number: dead.job.number,
    }
}

/// The cause that the caller named by the beginning of its id, or by the number or the id of a dead job.
pub fn find_cause(store: &dyn Store, typed: &str) -> Result<CauseId, OpError> {
    let ambiguous = || OpError::AmbiguousCause { typed: typed.to_owned() };
    let beginning = store.causes_beginning_with(typed, 2)?;
    // A few digits may be both a number and the beginning of an id.
    match (&beginning[..], cause_of_job(store, typed)?) {
        ([named], Some(of_job)) if *named != of_job => Err(ambiguous()),
        ([named], _) => Ok(*named),
        ([], Some(of_job)) => Ok(of_job),
        ([], None) => Err(OpError::NoSuch { what: Named::Cause, name: typed.to_owned(), nearest: None }),
        ([_, _, ..], _) => Err(ambiguous()),
    }
}

fn cause_of_job(store: &dyn Store, typed: &str) -> Result<Option<CauseId>, StoreError> {
    let by_id: Option<JobId> = typed.parse().ok();
    let mut found = by_id.map(|id| store.find(&id)).transpose()?.flatten();
    if found.is_none()
        && let Ok(number) = typed.parse()
        && let Some(id) = store.id_of_number(number)?
    {
        found = store.find(&id)?;
    }
    Ok(found.and_then(|job| {
        let reason = job.life.state.dead_reason()?.name().to_owned();
        let error = job.latest.error.as_deref().unwrap_or_default();
        Some(Cause::new(reason, job.latest.exit_code, job.latest.signal, error).id())
    }))
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
