//! The files of a living worker in `workers/`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::attempt::slot_records;
use crate::error::EngineError;
use crate::journal::JOURNAL;
use crate::orphans::containment;
use domain::log;
use domain::values::name::WorkerId;
use store::{Store, StoreError, WORKER_FILE};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, LOCK, LivenessLock, Role};
use sys::fs::{owner_only, ownership};

/// Removes the files of a worker that has ended, and its empty control group. Missing files are ignored.
pub(crate) fn remove(folder: &Path, worker: &WorkerId) {
    let name = worker.as_str();
    let is_group_gone = containment::remove(folder, name);
    // The lock file leads the next worker to a group that still contains a process.
    let lock = is_group_gone.then(|| liveness_lock::path(folder, name));
    let of_store = folder.join(format!("{name}.{WORKER_FILE}"));
    for path in [slot_records::path(folder, name), of_store].into_iter().chain(lock) {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes the files of workers that have ended, if the process that should have removed them died first. Keeps those
/// of workers that the store still lists, because their jobs are not reaped yet.
pub(crate) fn remove_stale(folder: &Path, store: &dyn Store) -> Result<(), StoreError> {
    // Listed first: a worker that has files but is not in the store has ended, or is registering and holds its lock.
    let listed = workers_with_files(folder).unwrap_or_default();
    let living = store.workers()?;
    for id in listed.iter().filter(|id| !living.iter().any(|worker| worker.id == **id)) {
        if let Ok(Some(_abandoned)) = LivenessLock::hold_abandoned(folder, id.as_str()) {
            remove(folder, id);
        }
    }
    Ok(())
}

/// Found by their lock files, which are removed last.
fn workers_with_files(folder: &Path) -> io::Result<Vec<WorkerId>> {
    let id = |path: PathBuf| {
        let is_lock = path.extension()? == LOCK;
        path.file_stem().filter(|_| is_lock)?.to_str()?.parse().ok()
    };
    Ok(folder.read_dir()?.flatten().filter_map(|entry| id(entry.path())).collect())
}

/// The folder of workers in a home; created if missing. A missing home is not created.
pub(crate) fn folder(home: &Path) -> Result<PathBuf, EngineError> {
    check_owners(home)?;
    let path = home.join(FOLDER);
    let made = owner_only::add_folder(&path).and_then(|()| path.canonicalize());
    made.map_err(|source| EngineError::CannotMake { path, source })
}

/// Refuses files and folders that other users could write to. For a folder that is a symlink its target is checked; a file
/// that is one is refused.
pub(crate) fn check_owners(home: &Path) -> Result<(), StoreError> {
    let [workers, logs, journal] = [FOLDER, log::FOLDER, JOURNAL].map(|name| home.join(name));
    let found =
        [(workers.metadata(), workers), (logs.metadata(), logs), (journal.symlink_metadata(), journal)];
    for (meta, path) in found {
        // Missing ones are created later.
        if let Ok(meta) = meta {
            ownership::check(&path, &meta)?;
        }
    }
    Ok(())
}

/// The folder of workers, as a supervisor opened it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// Identifies the folder: if the path now leads to another one or to none, the home was deleted.
    inode: u64,
}

impl Folder {
    pub(crate) fn create(home: &Path) -> Result<Self, EngineError> {
        let path = folder(home)?;
        let inode = inode(&path).map_err(EngineError::system("failed to read the folder of workers"))?;
        Ok(Self { path, inode })
    }

    /// Whether the home that it is in was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        is_gone(&self.path, self.inode)
    }
}

/// The files of this worker, and the lock that proves that it is alive.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
    worker: WorkerId,
    pub(crate) liveness_lock: LivenessLock,
    /// Identifies the lock file: if the path now leads to another one or to none, the home was moved or deleted.
    inode: u64,
}

/// The state of a home after a worker ran in it for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomeState {
    Kept,
    /// It has another path. Other workers find it there, but the paths of this worker are invalid.
    Moved,
    Deleted,
}

impl Files {
    pub(crate) fn create(home: &Path, worker: &WorkerId) -> Result<Self, EngineError> {
        let folder = folder(home)?;
        let system = EngineError::system("failed to lock the worker's file");
        let liveness_lock = LivenessLock::hold(&folder, worker.as_str(), Role::Worker).map_err(system)?;
        let inode = inode(&liveness_lock::path(&folder, worker.as_str())).map_err(system)?;
        Ok(Self { folder, worker: worker.clone(), liveness_lock, inode })
    }

    /// Whether the home still exists at its path.
    pub(crate) fn home_state(&self) -> HomeState {
        if !is_gone(&liveness_lock::path(&self.folder, self.worker.as_str()), self.inode) {
            HomeState::Kept
        } else if self.liveness_lock.is_linked() {
            HomeState::Moved
        } else {
            HomeState::Deleted
        }
    }

    pub(crate) fn remove(&self) {
        remove(&self.folder, &self.worker);
    }
}

fn is_gone(path: &Path, known: u64) -> bool {
    match inode(path) {
        Ok(inode) => inode != known,
        Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

fn inode(path: &Path) -> io::Result<u64> {
    Ok(path.metadata()?.ino())
}
