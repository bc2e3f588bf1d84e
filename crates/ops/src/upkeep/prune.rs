//! Forgetting what is old, by hand.

use std::path::Path;
use std::time::Duration;

use domain::log;
use store::retention::{PruneTotals, RetentionPass};
use store::{Duty, JobRef, Store, StoreError, settings};

/// When workers begin the next time.
const REST: Duration = Duration::from_secs(3_600);

/// What to forget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Everything that is older than the settings say.
    BySettings,
    /// Those of these jobs that are finished, and for which nobody has use.
    Chosen(Vec<JobRef>),
}

/// What would be forgotten.
pub fn count(store: &dyn Store, home: &Path, wanted: &Wanted) -> Result<PruneTotals, StoreError> {
    let mut walk = walk(store, home, wanted)?.dry_run();
    while walk.step(store)? {}
    Ok(walk.deleted())
}

/// Forgets it, and tells `progress` how many jobs are gone.
pub fn prune(
    store: &dyn Store,
    home: &Path,
    wanted: &Wanted,
    by: &str,
    mut progress: impl FnMut(u64),
) -> Result<PruneTotals, StoreError> {
    let mut walk = walk(store, home, wanted)?;
    let mut told = 0;
    while walk.step(store)? {
        progress(walk.deleted().jobs - told);
        told = walk.deleted().jobs;
    }
    let forgotten = walk.deleted();
    if forgotten != PruneTotals::default() {
        store.end_duty(Duty::Prune, REST, by, Some(&forgotten.to_string()))?;
    }
    Ok(forgotten)
}

fn walk(store: &dyn Store, home: &Path, wanted: &Wanted) -> Result<RetentionPass, StoreError> {
    let (logs, now) = (home.join(log::FOLDER), store.now()?);
    store.finish_restore(&logs)?;
    Ok(match wanted {
        Wanted::BySettings => RetentionPass::by_settings(&settings::in_force(store)?, now, &logs),
        Wanted::Chosen(jobs) => RetentionPass::of_selected(jobs.clone(), now, &logs),
    })
}
