//! Stopping workers: recording the order in the store and checking which workers are still alive.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::live::live_workers;
use domain::values::name::WorkerId;
use store::{Notice, Stop, StopScope, Store, StoreError, Worker};
use sys::fs::liveness_lock::FOLDER;
use sys::host;
use sys::host::{HostKey, Observer};

/// Which workers to stop.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// The workers of this home on this machine.
    Home(&'a Path),
    Everywhere,
    /// This one, wherever it is. The others of its pool continue.
    Worker(&'a WorkerId),
}

/// The workers that were ordered to stop.
#[derive(Clone, Debug)]
pub struct StopOrder {
    /// The workers that were alive when the order was given.
    pub workers: Vec<Worker>,
    /// How many other workers of this store keep running although the caller may have meant them, too.
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
    let stop_scope = match scope {
        Scope::Home(home) => StopScope::Home(key_of(home)),
        Scope::Everywhere => StopScope::Everywhere,
        Scope::Worker(worker) => StopScope::Worker(worker.clone()),
    };
    let (workers, others): (Vec<Worker>, Vec<Worker>) =
        live_workers(store)?.into_iter().partition(|worker| is_of(worker, &stop_scope));
    if let (Scope::Worker(worker), []) = (scope, workers.as_slice()) {
        return Err(StoreError::NoSuchWorker(worker.clone()));
    }
    if !workers.is_empty() {
        let now = store.now()?;
        let kill_at = grace.map(|grace| now.saturating_add(grace));
        store.stop(&Stop { scope: stop_scope, kill_at }, by)?;
        store.announce(Notice::Orders)?;
    }
    let (supervisors, others) = match scope {
        Scope::Home(_) | Scope::Everywhere => {
            (workers.iter().filter_map(supervisor_of).collect(), others.len())
        }
        // The caller means to keep the others.
        Scope::Worker(_) => (BTreeSet::new(), 0),
    };
    let ids = workers.iter().map(|worker| worker.id.clone()).collect();
    Ok(StopOrder { workers, others, ids, supervisors })
}

fn is_of(worker: &Worker, scope: &StopScope) -> bool {
    let key = &worker.origin.key;
    match scope {
        StopScope::Everywhere => true,
        StopScope::Home(home) => key.home_id == home.home_id && key.machine_id == home.machine_id,
        StopScope::Worker(id) => worker.id == *id,
    }
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
