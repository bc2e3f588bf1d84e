//! The workers: which have died without anybody noticing, which hang, and what they left lying about.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::NOT_AS_ROOT;
use super::{Diagnosis, Finding, counted};
use crate::status::HOW_TO_START_A_WORKER;
use crate::worker::alive::parted;
use store::{Store, StoreError, Worker};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, Role};
use sys::host;
use sys::host::{Reach, Vantage};
use sys::process::user;

pub(super) fn check(
    diagnosis: &mut Diagnosis,
    store: &dyn Store,
    home: &Path,
    lease: Duration,
) -> Result<(), StoreError> {
    let (live, dead) = parted(store)?;
    let running = match live.len() {
        0 => "none runs".to_owned(),
        count => counted(count, "runs", "run"),
    };
    diagnosis.add(Finding::ok("workers", running));
    for worker in &dead {
        diagnosis.add(died(worker, !live.is_empty()));
    }
    for worker in live.iter().filter(|worker| hangs(worker, lease)) {
        diagnosis.add(hung(worker));
    }
    if let Some(finding) = leftovers(&home.join(FOLDER), |name| {
        live.iter().chain(&dead).any(|worker| worker.id.as_str() == name)
    }) {
        diagnosis.add(finding);
    }
    for worker in live.iter().filter(|worker| runs_as_root(worker)) {
        let said = format!("worker {} runs as root, and so does each of its jobs", worker.id);
        diagnosis.add(Finding::warning("root_worker", said).advise(NOT_AS_ROOT));
    }
    Ok(())
}

/// A worker that did not say goodbye and is not there any more. Its supervisor, the next worker or the one after that
/// gives its jobs back.
fn died(worker: &Worker, is_noticed: bool) -> Finding {
    let reach = |vantage: Vantage| host::reach(&vantage, &worker.origin, &worker.folder, worker.id.as_str());
    let how = match Vantage::here().map_or(Reach::Elsewhere, reach) {
        Reach::Here => "died",
        Reach::Rebooted => "was running when the machine went down",
        Reach::Elsewhere => {
            "was not heard from for a whole lease, in another container or on another machine,"
        }
    };
    let jobs = match worker.held {
        0 => String::new(),
        held => format!("; {} to be given back", counted(held as usize, "job waits", "jobs wait")),
    };
    let said = format!("worker {} (process {}) {how}{jobs}", worker.id, worker.pid);
    let supervisor_lives = liveness_lock::is_held(&worker.folder, worker.id.as_str(), Role::Supervisor);
    let advice = if supervisor_lives.unwrap_or(false) {
        "its supervisor is about to clean up; ask again in a moment".to_owned()
    } else if is_noticed {
        "the other workers are about to; if it stays so, worker.log says why".to_owned()
    } else {
        format!("the next worker cleans up; {HOW_TO_START_A_WORKER}")
    };
    Finding::warning("dead_worker", said).advise(advice)
}

/// Whether it holds leases past their time and shows no other sign of life.
fn hangs(worker: &Worker, lease: Duration) -> bool {
    worker.overdue && !liveness_lock::was_touched_within(&worker.folder, worker.id.as_str(), lease)
}

fn hung(worker: &Worker) -> Finding {
    let (id, pid) = (&worker.id, worker.pid);
    Finding::warning(
        "hung_worker",
        format!("worker {id} (process {pid}) holds jobs past its lease and hangs"),
    )
    .advise("its supervisor is about to replace it; if it stays so, worker.log says why")
}

/// Whoever made its lock runs it; its pid may be a stranger's where a home is shared between containers.
fn runs_as_root(worker: &Worker) -> bool {
    let lock = liveness_lock::path(&worker.folder, worker.id.as_str());
    lock.metadata().is_ok_and(|meta| meta.uid() == user::ROOT)
}

/// Files of workers that have ended, where whoever was to remove them died before.
fn leftovers(folder: &Path, is_known: impl Fn(&str) -> bool) -> Option<Finding> {
    let name = |path: PathBuf| Some(path.extension().and(path.file_stem())?.to_str()?.to_owned());
    let entries = folder.read_dir().ok()?;
    let names: BTreeSet<String> = entries.flatten().filter_map(|entry| name(entry.path())).collect();
    let is_held = |name: &str, role| liveness_lock::is_held(folder, name, role).unwrap_or(true);
    let abandoned = names
        .iter()
        .filter(|name| !is_known(name) && !is_held(name, Role::Worker) && !is_held(name, Role::Supervisor));
    let count @ 1.. = abandoned.count() else {
        return None;
    };
    let said = format!("files of {} are left in {FOLDER}/", counted(count, "worker", "workers"));
    Some(Finding::warning("worker_files", said).advise("they do no harm, and the next worker removes them"))
}
