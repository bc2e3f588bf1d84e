//! Derived data of the store (counters, queue order, keys): whether it agrees with the jobs.

use std::collections::BTreeMap;

use super::{Diagnosis, Finding};
use crate::OpError;
use store::{Contradiction, Store, StoreError};

/// How to repair a contradiction.
const REPAIR: &str = "run `queuectl doctor --repair` to rebuild it from the jobs; workers can keep running";

pub(super) fn check(diagnosis: &mut Diagnosis, store: &dyn Store) {
    let found = match store.recount() {
        Ok(found) => found,
        Err(error) => return diagnosis.refuse("recount", error, None),
    };
    if found.is_empty() {
        diagnosis.add(Finding::ok(
            "recount",
            "counters, queue order, dependencies, keys and tags agree with the jobs",
        ));
    }
    for message in by_table(&found) {
        diagnosis.refuse("recount", StoreError::Corrupt { source: message.into() }, Some(REPAIR));
    }
    diagnosis.contradictions = found;
}

/// ``counters: a queue has 2 pending jobs, but 5 are counted, and 3 more``
fn by_table(found: &[Contradiction]) -> Vec<String> {
    let mut tables: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for contradiction in found {
        tables.entry(contradiction.derived.table()).or_default().push(&contradiction.message);
    }
    let line = |(table, messages): (&str, Vec<&str>)| match &messages[..] {
        [] => table.to_owned(),
        [one] => format!("{table}: {one}"),
        [first, more @ ..] => format!("{table}: {first}, and {} more", more.len()),
    };
    tables.into_iter().map(line).collect()
}

/// Rebuilds the derived data from the jobs.
pub fn repair(store: &dyn Store, found: &[Contradiction], by: &str) -> Result<(), OpError> {
    Ok(store.repair(found, by)?)
}
