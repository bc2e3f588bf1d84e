//! The workers: which have died unnoticed, which hang, and which files they left.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::account::NOT_AS_ROOT;
use super::{Diagnosis, Finding, counted};
use crate::status::HOW_TO_START_A_WORKER;
use crate::worker::live::live_and_dead_workers;
use store::{Store, StoreError, Worker};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, Role};
use sys::host;
use sys::host::{Observer, Reach};
use sys::process::user;

pub(super) fn check(
    diagnosis: &mut Diagnosis,
    store: &dyn Store,
    home: &Path,
    lease: Duration,
) -> Result<(), StoreError> {
    let (live, dead) = live_and_dead_workers(store)?;
    let running = match live.len() {
        0 => "none running".to_owned(),
        count => counted(count, "running", "running"),
    };
    diagnosis.add(Finding::ok("workers", running));
    for worker in &dead {
        diagnosis.add(died(worker, !live.is_empty()));
    }
    for worker in live.iter().filter(|worker| hangs(worker, lease)) {
        diagnosis.add(hung(worker));
    }
    if let Some(finding) = stale_files(&home.join(FOLDER), |name| {
        live.iter().chain(&dead).any(|worker| worker.id.as_str() == name)
    }) {
        diagnosis.add(finding);
    }
    let of_root: Vec<&Worker> = live.iter().filter(|worker| runs_as_root(worker)).collect();
    let message = match of_root[..] {
        [] => return Ok(()),
        [worker] => format!("worker {} runs as root, and so do its jobs", worker.id),
        [..] => format!("{} workers run as root, and so do their jobs", of_root.len()),
    };
    diagnosis.add(Finding::warning("root_worker", message).advise(NOT_AS_ROOT));
    Ok(())
}

/// A dead worker that did not deregister. Its supervisor or another worker recovers its jobs.
fn died(worker: &Worker, is_noticed: bool) -> Finding {
    let reach =
        |observer: Observer| host::reach(&observer, &worker.origin, &worker.folder, worker.id.as_str());
    let how = match Observer::here().map_or(Reach::Elsewhere, reach) {
        Reach::Here => "died",
        Reach::Rebooted => "was running when the machine went down",
        Reach::Elsewhere => {
            "in another container or on another machine has sent no heartbeat for a whole lease"
        }
    };
    let jobs = match worker.held {
        0 => String::new(),
        held => format!("; {} to be recovered", counted(held as usize, "job waits", "jobs wait")),
    };
    let message = format!("worker {} (process {}) {how}{jobs}", worker.id, worker.pid);
    let supervisor_lives = liveness_lock::is_held(&worker.folder, worker.id.as_str(), Role::Supervisor);
    let advice = if supervisor_lives.unwrap_or(false) {
        "its supervisor is cleaning up; run `queuectl doctor` again in a few seconds".to_owned()
    } else if is_noticed {
        "the other workers will clean up; if this persists, see worker.log".to_owned()
    } else {
        format!("the next worker will clean up; {HOW_TO_START_A_WORKER}")
    };
    Finding::warning("dead_worker", message).advise(advice)
}

/// Whether it holds expired leases and has not touched its lock file recently.
fn hangs(worker: &Worker, lease: Duration) -> bool {
    worker.overdue && !liveness_lock::was_touched_within(&worker.folder, worker.id.as_str(), lease)
}

fn hung(worker: &Worker) -> Finding {
    let (id, pid) = (&worker.id, worker.pid);
    Finding::warning(
        "hung_worker",
        format!("worker {id} (process {pid}) hangs; the leases of its jobs have expired"),
    )
    .advise("its supervisor will replace it; if this persists, see worker.log")
}

/// The owner of its lock file runs the worker. Its pid cannot be used: if containers share the home, it may belong to
/// an unrelated process here.
fn runs_as_root(worker: &Worker) -> bool {
    let lock = liveness_lock::path(&worker.folder, worker.id.as_str());
    lock.metadata().is_ok_and(|meta| meta.uid() == user::ROOT)
}

/// Files of ended workers that were not deleted because their supervisor died too.
fn stale_files(folder: &Path, is_known: impl Fn(&str) -> bool) -> Option<Finding> {
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
    let message = format!("{FOLDER}/ contains files of {}", counted(count, "dead worker", "dead workers"));
    Some(Finding::warning("worker_files", message).advise("they are harmless; the next worker deletes them"))
}
