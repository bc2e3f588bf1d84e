//! Jobs that were cancelled because a job that they depend on is dead or cancelled: on whose account, and which others
//! were cancelled on the same account.

use std::collections::{HashMap, HashSet, VecDeque};

use domain::explain::named_jobs::FailedDependency;
use domain::job::Job;
use domain::job::life::{CancelReason, State, StateName};
use domain::values::name::JobId;
use store::{Store, StoreError};

/// How many jobs are followed from a cancelled job to the one that failed first.
const MAX_STEPS: usize = 100;
/// How many dependencies of a job are examined.
const MAX_DEPENDENCIES: usize = 1_000;

/// The job on whose account this one was cancelled; `None` if it was not cancelled because of a dependency, or if that
/// has been retried or removed since.
pub fn failed_dependency(store: &dyn Store, job: &Job) -> Result<Option<FailedDependency>, StoreError> {
    let mut current = job.clone();
    let mut found = None;
    for _ in 0..MAX_STEPS {
        if !is_cancelled_by_dependency(&current) {
            break;
        }
        let Some(parent) = first_failed_parent(store, &current)? else {
            break;
        };
        let why = match parent.life.state.name() {
            StateName::Dead => parent.latest.error.clone().or_else(|| reason(&parent)),
            StateName::Cancelled => reason(&parent),
            StateName::Pending | StateName::Processing | StateName::Failed | StateName::Completed => None,
        };
        let (id, handle, state) = (parent.id.clone(), parent.handle(), parent.life.state.name());
        found = Some(FailedDependency { id, handle, state, why });
        current = parent;
    }
    Ok(found)
}

fn reason(job: &Job) -> Option<String> {
    job.life.state.reason().map(|reason| reason.replace('_', " "))
}

fn is_cancelled_by_dependency(job: &Job) -> bool {
    matches!(job.life.state, State::Cancelled { reason: CancelReason::Dependency, .. })
}

/// The dependency that failed first, before the job was cancelled.
fn first_failed_parent(store: &dyn Store, job: &Job) -> Result<Option<Job>, StoreError> {
    let mut first: Option<Job> = None;
    for id in job.depends_on.iter().take(MAX_DEPENDENCIES) {
        let Some(parent) = store.find(id)? else {
            continue;
        };
        let ended_at = parent.life.state.finished_at();
        let is_cause = has_failed(&parent) && ended_at <= job.life.state.finished_at();
        if is_cause && first.as_ref().is_none_or(|first| ended_at < first.life.state.finished_at()) {
            first = Some(parent);
        }
    }
    Ok(first)
}

fn has_failed(job: &Job) -> bool {
    matches!(job.life.state.name(), StateName::Dead | StateName::Cancelled)
}

/// The jobs that were cancelled on account of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelledDependents {
    /// Those that need nothing else that failed, each after those that it depends on.
    pub ids: Vec<JobId>,
    /// Those that also depend on another job that is dead or cancelled.
    pub held_back: Vec<JobId>,
    /// Whether there are more than were examined.
    pub is_cut: bool,
}

/// The jobs that were cancelled on account of `roots`. At most `limit` jobs around each are examined.
pub fn cancelled_dependents(
    store: &dyn Store,
    roots: &[JobId],
    limit: usize,
) -> Result<CancelledDependents, StoreError> {
    let mut jobs: HashMap<JobId, Job> = HashMap::new();
    let mut result = CancelledDependents::default();
    for root in roots {
        let graph = store.graph(root, limit)?.unwrap_or_default();
        result.is_cut |= graph.is_cut;
        let cancelled =
            graph.nodes.into_iter().skip(1).filter(|node| node.state == Some(StateName::Cancelled));
        for node in cancelled.filter(|node| !roots.contains(&node.id)) {
            let job = store.find(&node.id)?.filter(is_cancelled_by_dependency);
            jobs.extend(job.map(|job| (node.id, job)));
        }
    }
    let mut again: HashSet<JobId> = roots.iter().cloned().collect();
    for job in parents_first(&jobs) {
        if !job.depends_on.iter().any(|id| again.contains(id)) {
            // It was cancelled on another account.
            continue;
        }
        if has_other_failure(store, job, &again)? {
            result.held_back.push(job.id.clone());
        } else {
            again.insert(job.id.clone());
            result.ids.push(job.id.clone());
        }
    }
    Ok(result)
}

fn has_other_failure(store: &dyn Store, job: &Job, again: &HashSet<JobId>) -> Result<bool, StoreError> {
    for id in job.depends_on.iter().filter(|id| !again.contains(*id)) {
        if store.find(id)?.is_some_and(|parent| has_failed(&parent)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// These jobs, each after those of them that it depends on; otherwise in the order of enqueuing.
fn parents_first(jobs: &HashMap<JobId, Job>) -> Vec<&Job> {
    let mut ordered: Vec<&Job> = jobs.values().collect();
    ordered.sort_unstable_by_key(|job| job.number);
    let known = |job: &Job| job.depends_on.iter().filter(|id| jobs.contains_key(*id)).count();
    let mut open: HashMap<&JobId, usize> = ordered.iter().map(|job| (&job.id, known(job))).collect();
    let mut children: HashMap<&JobId, Vec<&Job>> = HashMap::new();
    for &job in &ordered {
        for parent in &job.depends_on {
            children.entry(parent).or_default().push(job);
        }
    }
    let mut free: VecDeque<&Job> = ordered.iter().copied().filter(|job| open[&job.id] == 0).collect();
    let mut sorted = Vec::with_capacity(ordered.len());
    while let Some(job) = free.pop_front() {
        sorted.push(job);
        for &child in children.get(&job.id).map(Vec::as_slice).unwrap_or_default() {
            let left = open.get_mut(&child.id).expect("every child is one of the jobs");
            *left -= 1;
            if *left == 0 {
                free.push_back(child);
            }
        }
    }
    sorted
}
