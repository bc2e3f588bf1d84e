//! Stopping workers: an order in the store, and waiting until it is carried out.

use std::collections::BTreeSet;
use std::time::Duration;

use super::alive::live_workers;
use super::announce;
use crate::domain::name::WorkerId;
use crate::store::{Stop, Store, StoreError, Worker};
use crate::sys::boot;

/// Which workers are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    ThisMachine,
    Everywhere,
}

/// Workers that were told to stop.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// Those that were there, to report.
    pub workers: Vec<Worker>,
    ids: BTreeSet<WorkerId>,
    guardians: BTreeSet<u32>,
}

/// Tells workers to claim nothing more, finish what they run, and end. What runs for longer than `patience` is killed
/// and given back.
pub fn order(
    store: &dyn Store,
    scope: Scope,
    patience: Option<Duration>,
    by: &str,
) -> Result<Stopping, StoreError> {
    let host = match scope {
        Scope::ThisMachine => Some(boot::host()),
        Scope::Everywhere => None,
    };
    let mut workers = live_workers(store)?;
    workers.retain(|worker| host.as_ref().is_none_or(|host| *host == worker.host));
    if !workers.is_empty() {
        let now = store.now()?;
        store.stop(&Stop { host, kill_at: patience.map(|patience| now.saturating_add(patience)) }, by)?;
        announce::to_all(store)?;
    }
    Ok(Stopping {
        ids: workers.iter().map(|worker| worker.id.clone()).collect(),
        guardians: workers.iter().filter_map(|worker| worker.guardian_pid).collect(),
        workers,
    })
}

impl Stopping {
    /// Those that are still there, and those that took the place of one that crashed meanwhile.
    pub fn still_there(&self, store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
        let is_meant = |worker: &Worker| {
            self.ids.contains(&worker.id)
                || worker.guardian_pid.is_some_and(|guardian| self.guardians.contains(&guardian))
        };
        let mut workers = live_workers(store)?;
        workers.retain(is_meant);
        Ok(workers)
    }
}
