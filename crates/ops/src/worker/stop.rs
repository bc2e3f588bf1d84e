//! Stopping workers: recording the order in the store and checking which workers are still alive.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::live::live_workers;
use domain::values::name::WorkerId;
use store::{Notice, Stop, Store, StoreError, Worker};
use sys::fs::liveness_lock::FOLDER;
use sys::host;
use sys::host::{HostKey, Observer};

/// Which workers to stop.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// The workers of this home on this machine.
    Home(&'a Path),
    Everywhere,
}

/// The workers that were ordered to stop.
#[derive(Clone, Debug)]
pub struct StopOrder {
    /// The workers that were alive when the order was given.
    pub workers: Vec<Worker>,
    /// How many other workers of this store keep running.
    pub others: usize,
    ids: BTreeSet<WorkerId>,
    supervisors: BTreeSet<Supervisor>,
}

/// A supervisor: its pid, with the host and pid namespace in which the pid is valid.
type Supervisor = (HostKey, u64, u32);

fn supervisor_of(worker: &Worker) -> Option<Supervisor> {
    Some((worker.origin.key.clone(), worker.origin.pid_namespace, worker.supervisor_pid?))
}

/// Orders workers to drain and exit. Attempts that run longer than `grace` are killed and released.
pub fn order(
    store: &dyn Store,
    scope: Scope<'_>,
    grace: Option<Duration>,
    by: &str,
) -> Result<StopOrder, StoreError> {
    let home = match scope {
        Scope::Home(home) => Some(key_of(home)),
        Scope::Everywhere => None,
    };
    let is_of = |worker: &Worker, home: &HostKey| {
        worker.origin.key.home_id == home.home_id && worker.origin.key.machine_id == home.machine_id
    };
    let (workers, others): (Vec<Worker>, Vec<Worker>) = live_workers(store)?
        .into_iter()
        .partition(|worker| home.as_ref().is_none_or(|home| is_of(worker, home)));
    if !workers.is_empty() {
        let now = store.now()?;
        store.stop(&Stop { home, kill_at: grace.map(|grace| now.saturating_add(grace)) }, by)?;
        store.announce(Notice::Orders)?;
    }
    Ok(StopOrder {
        ids: workers.iter().map(|worker| worker.id.clone()).collect(),
        supervisors: workers.iter().filter_map(supervisor_of).collect(),
        workers,
        others: others.len(),
    })
}

/// Identifies this home and machine without the host name, which may have changed since the workers were started.
fn key_of(home: &Path) -> HostKey {
    let home_id = host::home_id(&home.join(FOLDER)).unwrap_or_default();
    let observer = Observer::here().ok();
    let (machine_id, boot_id) =
        observer.map(|observer| (observer.machine_id, observer.boot_id)).unwrap_or_default();
    HostKey { machine_id, boot_id, home_id }
}

impl StopOrder {
    /// The stopping workers that are still alive, and the replacements of those that crashed meanwhile.
    pub fn still_there(&self, store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
        let is_target = |worker: &Worker| {
            self.ids.contains(&worker.id)
                || supervisor_of(worker).is_some_and(|supervisor| self.supervisors.contains(&supervisor))
        };
        let mut workers = live_workers(store)?;
        workers.retain(is_target);
        Ok(workers)
    }
}
