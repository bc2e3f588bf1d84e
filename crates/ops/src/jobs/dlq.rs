//! The dead-letter queue, grouped by cause of death.

use std::collections::BTreeMap;

use serde::Serialize;

use domain::job::cause::cause;
use domain::values::name::JobId;
use domain::values::timestamp::Timestamp;
use store::{Store, StoreError};

/// Dead jobs that died of the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseGroup {
    pub reason: String,
    /// The error line with numbers, paths and other variable parts masked.
    pub cause: String,
    pub count: u64,
    pub last_at: Timestamp,
    pub example: JobId,
}

/// Groups the dead jobs, largest group first.
pub fn group_by_cause(store: &dyn Store) -> Result<Vec<CauseGroup>, StoreError> {
    let mut groups: BTreeMap<(String, String), CauseGroup> = BTreeMap::new();
    for dead in store.dead_by_error()? {
        let cause = cause(dead.error.as_deref().unwrap_or_default());
        let group = groups.entry((dead.reason.clone(), cause.clone())).or_insert_with(|| CauseGroup {
            reason: dead.reason,
            cause,
            count: 0,
            last_at: dead.last_at,
            example: dead.example.clone(),
        });
        group.count += dead.count;
        if dead.last_at > group.last_at {
            group.last_at = dead.last_at;
            group.example = dead.example;
        }
    }
    let mut groups: Vec<CauseGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(groups)
}
