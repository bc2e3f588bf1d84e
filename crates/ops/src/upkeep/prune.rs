//! Pruning on request: deleting old jobs, logs and events.

use std::path::Path;
use std::time::Duration;

use domain::log;
use store::retention::{PruneTotals, RetentionPass};
use store::{Duty, JobFilter, JobRef, Store, StoreError, settings};

/// How long after a manual prune the workers wait before their next one.
const NEXT_AUTOMATIC_PRUNE: Duration = Duration::from_secs(3_600);

/// The jobs and events to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PruneScope {
    /// Everything older than the retention settings allow.
    BySettings,
    /// Those of these jobs that are finished, that no other job waits for, and that do not hold a unique key.
    Chosen(Vec<JobRef>),
    /// The same for the jobs that match.
    Matching(Box<JobFilter>),
}

/// Counts what would be deleted.
pub fn count(store: &dyn Store, home: &Path, scope: &PruneScope) -> Result<PruneTotals, StoreError> {
    let mut walk = walk(store, home, scope)?.dry_run();
    while walk.step(store)? {}
    Ok(walk.deleted())
}

/// Deletes it and calls `progress` with the number of jobs deleted in each step.
pub fn prune(
    store: &dyn Store,
    home: &Path,
    scope: &PruneScope,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<PruneTotals, StoreError> {
    let mut walk = walk(store, home, scope)?;
    let mut reported = 0;
    while walk.step(store)? {
        progress(walk.deleted().jobs - reported);
        reported = walk.deleted().jobs;
    }
    let deleted = walk.deleted();
    if deleted != PruneTotals::default() {
        store.end_duty(Duty::Prune, NEXT_AUTOMATIC_PRUNE, by, Some(&deleted.to_string()))?;
    }
    Ok(deleted)
}

fn walk(store: &dyn Store, home: &Path, scope: &PruneScope) -> Result<RetentionPass, StoreError> {
    let (logs, now) = (home.join(log::FOLDER), store.now()?);
    store.prepare_logs(&logs)?;
    Ok(match scope {
        PruneScope::BySettings => RetentionPass::by_settings(&settings::in_force(store)?, now, &logs),
        PruneScope::Chosen(jobs) => RetentionPass::of_selected(jobs.clone(), now, &logs),
        PruneScope::Matching(filter) => {
            RetentionPass::of_matching(*filter.clone(), store.newest_number()?, now, &logs)
        }
    })
}
