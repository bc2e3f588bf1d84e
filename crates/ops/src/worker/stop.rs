//! Stopping workers: an order in the store, and waiting until it is carried out.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::alive::live_workers;
use super::announce;
use domain::values::name::WorkerId;
use store::{Stop, Store, StoreError, Worker};
use sys::fs::liveness_lock::FOLDER;
use sys::host;
use sys::host::{HostKey, Vantage};

/// Which workers to stop.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those of this home on this machine.
    Home(&'a Path),
    Everywhere,
}

/// Workers that were told to stop.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// Those that were there, to report.
    pub workers: Vec<Worker>,
    /// How many others of this store go on.
    pub others: usize,
    ids: BTreeSet<WorkerId>,
    supervisors: BTreeSet<Supervisor>,
}

/// A supervisor by its pid and where that pid means something.
type Supervisor = (HostKey, u64, u32);

fn supervisor_of(worker: &Worker) -> Option<Supervisor> {
    Some((worker.origin.key.clone(), worker.origin.pid_namespace, worker.supervisor_pid?))
}

/// Tells workers to claim nothing more, finish what they run, and end. What runs for longer than `patience` is killed
/// and given back.
pub fn order(
    store: &dyn Store,
    scope: Scope<'_>,
    patience: Option<Duration>,
    by: &str,
) -> Result<Stopping, StoreError> {
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
        store.stop(&Stop { home, kill_at: patience.map(|patience| now.saturating_add(patience)) }, by)?;
        announce::to_all(store)?;
    }
    Ok(Stopping {
        ids: workers.iter().map(|worker| worker.id.clone()).collect(),
        supervisors: workers.iter().filter_map(supervisor_of).collect(),
        workers,
        others: others.len(),
    })
}

/// The name of a machine may have changed since its workers were started, so it is not asked.
fn key_of(home: &Path) -> HostKey {
    let home_id = host::home_id(&home.join(FOLDER)).unwrap_or_default();
    let vantage = Vantage::here().ok();
    let (machine_id, boot_id) =
        vantage.map(|vantage| (vantage.machine_id, vantage.boot_id)).unwrap_or_default();
    HostKey { machine_id, boot_id, home_id }
}

impl Stopping {
    /// Those that are still there, and those that took the place of one that crashed meanwhile.
    pub fn still_there(&self, store: &dyn Store) -> Result<Vec<Worker>, StoreError> {
        let is_meant = |worker: &Worker| {
            self.ids.contains(&worker.id)
                || supervisor_of(worker).is_some_and(|supervisor| self.supervisors.contains(&supervisor))
        };
        let mut workers = live_workers(store)?;
        workers.retain(is_meant);
        Ok(workers)
    }
}
