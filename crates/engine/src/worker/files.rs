//! The files that a worker keeps in `workers/` while it lives.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::attempt::slot_records;
use crate::error::EngineError;
use crate::journal::JOURNAL;
use domain::log;
use domain::values::name::WorkerId;
use store::{Store, StoreError, worker_bell};
use sys::fs::liveness_lock;
use sys::fs::liveness_lock::{FOLDER, LOCK, LivenessLock, Role};
use sys::fs::{owner_only, ownership};

/// What a worker that is gone no longer needs. What is not there is not missed.
pub(crate) fn remove(folder: &Path, worker: &WorkerId) {
    let name = worker.as_str();
    for path in
        [slot_records::path(folder, name), worker_bell(folder, worker), liveness_lock::path(folder, name)]
    {
        let _ = std::fs::remove_file(path);
    }
}

/// Removes what is left of workers that have ended, where whoever was to do so died before. A worker that the store
/// counts among the living is left alone, because its jobs are not given back yet.
pub(crate) fn tidy(folder: &Path, store: &dyn Store) -> Result<(), StoreError> {
    // Listed first: whoever is in the list and not among the living has ended, or holds its lock.
    let listed = workers_with_files(folder).unwrap_or_default();
    let living = store.workers()?;
    for id in listed.iter().filter(|id| !living.iter().any(|worker| worker.id == **id)) {
        if let Ok(Some(_abandoned)) = LivenessLock::hold_abandoned(folder, id.as_str()) {
            remove(folder, id);
        }
    }
    Ok(())
}

/// The file of the lock is the last that is removed.
fn workers_with_files(folder: &Path) -> io::Result<Vec<WorkerId>> {
    let id = |path: PathBuf| {
        let is_lock = path.extension()? == LOCK;
        path.file_stem().filter(|_| is_lock)?.to_str()?.parse().ok()
    };
    Ok(folder.read_dir()?.flatten().filter_map(|entry| id(entry.path())).collect())
}

/// The folder of workers in a home, made if it is missing. A home that is missing is not made.
pub(crate) fn folder(home: &Path) -> Result<PathBuf, EngineError> {
    check_owners(home)?;
    let path = home.join(FOLDER);
    let made = owner_only::add_folder(&path).and_then(|()| path.canonicalize());
    made.map_err(|source| EngineError::CannotMake { path, source })
}

/// Refuses what workers write to if it is not this user's alone. A link in a home is its user's own: its target counts.
pub(crate) fn check_owners(home: &Path) -> Result<(), StoreError> {
    for path in [FOLDER, log::FOLDER, JOURNAL].map(|name| home.join(name)) {
        // One that is missing is made.
        if let Ok(meta) = path.metadata() {
            ownership::check(&path, &meta)?;
        }
    }
    Ok(())
}

/// The folder of workers, as a supervisor knows it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Which folder it is: if another one has its name, or none, the home was deleted.
    inode: u64,
}

impl Folder {
    pub(crate) fn create(home: &Path) -> Result<Self, EngineError> {
        let path = folder(home)?;
        let inode = inode(&path).map_err(EngineError::system("failed to look at the folder of workers"))?;
        Ok(Self { path, inode })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the home that it is in was deleted.
    pub(crate) fn is_gone(&self) -> bool {
        is_gone(&self.path, self.inode)
    }
}

/// The files of this worker, and the lock that proves that it lives.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    worker: WorkerId,
    liveness_lock: LivenessLock,
    /// Which file the lock is on: if another one has its name, or none, the home was moved or deleted.
    inode: u64,
}

/// What became of a home while a worker ran in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HomeFate {
    Kept,
    /// It has another name. Other workers find it there, this one cannot: its paths lead nowhere.
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

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn bell(&self) -> PathBuf {
        worker_bell(&self.folder, &self.worker)
    }

    /// What became of the home that they are in.
    pub(crate) fn fate_of_home(&self) -> HomeFate {
        if !is_gone(&liveness_lock::path(&self.folder, self.worker.as_str()), self.inode) {
            HomeFate::Kept
        } else if self.liveness_lock.is_linked() {
            HomeFate::Moved
        } else {
            HomeFate::Deleted
        }
    }

    /// Shows that the worker lives although it cannot say so in the store: nobody is to take it for one that hangs.
    pub(crate) fn touch(&self) {
        self.liveness_lock.touch();
    }

    /// Tells others what is in the worker's way.
    pub(crate) fn say(&self, what: &str) {
        self.liveness_lock.report_problem(what);
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
