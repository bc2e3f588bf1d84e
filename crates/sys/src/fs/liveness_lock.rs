//! Proof that a process lives: a lock that the kernel frees when it dies, however it dies. Unlike a pid it cannot be
//! confused by zombies, or by strangers that were given the same number.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{owner_only, range_lock};

/// Whose life: each has a byte of its own in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Worker,
    Supervisor,
}

/// Where workers keep these files and their others, in a home.
pub const FOLDER: &str = "workers";
/// How the names of these files end.
pub const LOCK: &str = "lock";
/// The most that is written down of what is in somebody's way.
const MAX_SAID_BYTES: usize = 512;
/// The bytes of both.
const BOTH: Range<u64> = 0..2;
/// Far behind them each of the worker's jobs has a byte, at its number.
const FIRST_JOB: u64 = 1 << 40;

/// Held until it is dropped or the process ends.
#[derive(Debug)]
pub struct LivenessLock {
    file: File,
}

impl LivenessLock {
    /// Begins to prove that this process lives. Fails if another process proves the same.
    pub fn hold(folder: &Path, worker: &str, role: Role) -> io::Result<Self> {
        let path = path(folder, worker);
        loop {
            let file = owner_only::open_file(&path)?;
            if !range_lock::take(&file, byte(role))? {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another process holds its lock"));
            }
            // A lock on a file that was tidied away in between is one that nobody will ever see.
            if is_at(&file, &path)? {
                return Ok(Self { file });
            }
        }
    }

    /// Takes the part of everybody in a file that is there. `None` if somebody lives, or it is gone.
    pub fn hold_abandoned(folder: &Path, worker: &str) -> io::Result<Option<Self>> {
        let path = path(folder, worker);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) if range_lock::take(&file, BOTH)? && is_at(&file, &path)? => Ok(Some(Self { file })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Leaves a sign of life beside the lock, which a process that hangs holds too.
    pub fn touch(&self) {
        // Nobody can be told if it fails.
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// Whether the file still has a name: one that was moved has, one that was deleted has not.
    pub fn has_a_name(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }

    /// Writes down what is in this process's way, for others to read; nothing is where it is empty.
    pub fn say(&self, what: &str) {
        let what = &what.as_bytes()[..what.len().min(MAX_SAID_BYTES)];
        // Nobody can be told if it fails, and a disk that is full tells of itself.
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(what, 0));
    }
}

/// Shows, until it is dropped or the process ends, that a process inside a job of this worker waits for other jobs.
#[derive(Debug)]
pub struct WaitMark {
    _file: File,
}

impl WaitMark {
    pub fn hold(folder: &Path, worker: &str, job: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path(folder, worker))?;
        range_lock::share(&file, byte_of_job(job))?;
        Ok(Self { _file: file })
    }
}

/// Whether a process inside this job of this worker waits for other jobs.
pub fn is_waiting(folder: &Path, worker: &str, job: u64) -> bool {
    let file = File::options().read(true).write(true).open(path(folder, worker));
    file.and_then(|file| range_lock::is_held(&file, byte_of_job(job))).unwrap_or(false)
}

fn byte_of_job(number: u64) -> Range<u64> {
    let at = FIRST_JOB.saturating_add(number);
    at..at.saturating_add(1)
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |meta: Metadata| (meta.dev(), meta.ino());
    match path.metadata() {
        Ok(there) => Ok(identity(there) == identity(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a worker says is in its way.
pub fn said(folder: &Path, worker: &str) -> Option<String> {
    let mut said = vec![0; MAX_SAID_BYTES];
    let length = File::open(path(folder, worker)).ok()?.read_at(&mut said, 0).ok()?;
    (length > 0).then(|| String::from_utf8_lossy(&said[..length]).into_owned())
}

/// Whether the file was touched within this time.
pub fn was_touched_within(folder: &Path, worker: &str, span: Duration) -> bool {
    let touched = path(folder, worker).metadata().and_then(|meta| meta.modified());
    // A time in the future is a clock that was set back.
    touched.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < span))
}

pub fn path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.{LOCK}"))
}

/// Whether the worker, or its supervisor, lives. A file that is missing is one that was tidied away.
pub fn is_held(folder: &Path, worker: &str, role: Role) -> io::Result<bool> {
    match File::options().read(true).write(true).open(path(folder, worker)) {
        Ok(file) => range_lock::is_held(&file, byte(role)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn byte(role: Role) -> Range<u64> {
    match role {
        Role::Worker => 0..1,
        Role::Supervisor => 1..2,
    }
}
