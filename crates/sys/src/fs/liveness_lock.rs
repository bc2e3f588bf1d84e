//! Proof that a process is alive: a lock that the kernel releases when the process dies, however it dies. Unlike a pid, it
//! cannot be confused by zombies or by other processes that were given the same number.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{owner_only, range_lock};

/// The process that holds the lock; each role has its own byte in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Worker,
    Supervisor,
}

/// The directory of the workers' files in a home.
pub const FOLDER: &str = "workers";
/// The extension of these files.
pub const LOCK: &str = "lock";
/// The maximum length of a reported problem.
const MAX_PROBLEM_BYTES: usize = 512;
/// The bytes of both roles.
const BOTH: Range<u64> = 0..2;
/// Far after them, each of the worker's jobs has a byte, at the offset of its number.
const FIRST_JOB: u64 = 1 << 40;

/// The lock is held until this value is dropped or the process ends.
#[derive(Debug)]
pub struct LivenessLock {
    file: File,
}

impl LivenessLock {
    /// Takes the lock. Fails if another process holds it.
    pub fn hold(folder: &Path, worker: &str, role: Role) -> io::Result<Self> {
        let path = path(folder, worker);
        loop {
            let file = owner_only::open_file(&path)?;
            if !range_lock::take(&file, byte(role))? {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another process holds its lock"));
            }
            // If the file was removed in the meantime, no process would ever see the lock.
            if owner_only::is_at(&file, &path)? {
                return Ok(Self { file });
            }
        }
    }

    /// Takes the locks of both roles in an existing file. `None` if a process holds one of them, or the file is gone.
    pub fn hold_abandoned(folder: &Path, worker: &str) -> io::Result<Option<Self>> {
        let path = path(folder, worker);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => {
                let is_held = range_lock::take(&file, BOTH)? && owner_only::is_at(&file, &path)?;
                Ok(is_held.then_some(Self { file }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Updates the file's time as a sign of life, in addition to the lock, which a process that hangs also holds.
    pub fn touch(&self) {
        // A failure cannot be reported anywhere.
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// Whether the file still has a name: a moved file does, a deleted one does not.
    pub fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }

    /// Records what prevents this process from working, for other processes to read; empty if nothing does.
    pub fn report_problem(&self, problem: &str) {
        let problem = &problem.as_bytes()[..problem.len().min(MAX_PROBLEM_BYTES)];
        // A failure cannot be reported anywhere, and a full disk is noticed elsewhere.
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(problem, 0));
    }
}

/// Shows, until it is dropped or the process ends, that a process inside a job of this worker is waiting for other jobs.
#[derive(Debug)]
pub struct WaitLock {
    _file: File,
}

impl WaitLock {
    pub fn hold(folder: &Path, worker: &str, job: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path(folder, worker))?;
        range_lock::share(&file, byte_of_job(job))?;
        Ok(Self { _file: file })
    }
}

/// Whether a process inside this job of this worker is waiting for other jobs.
pub fn is_waiting(folder: &Path, worker: &str, job: u64) -> bool {
    range_lock::is_held_at(&path(folder, worker), byte_of_job(job)).unwrap_or(false)
}

fn byte_of_job(number: u64) -> Range<u64> {
    let at = FIRST_JOB.saturating_add(number);
    at..at.saturating_add(1)
}

/// The problem that a worker has reported.
pub fn reported_problem(folder: &Path, worker: &str) -> Option<String> {
    let mut problem = vec![0; MAX_PROBLEM_BYTES];
    let length = File::open(path(folder, worker)).ok()?.read_at(&mut problem, 0).ok()?;
    (length > 0).then(|| String::from_utf8_lossy(&problem[..length]).into_owned())
}

/// Whether the file was touched within this time.
pub fn was_touched_within(folder: &Path, worker: &str, span: Duration) -> bool {
    let touched = path(folder, worker).metadata().and_then(|meta| meta.modified());
    // A time in the future means that the clock was set back.
    touched.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < span))
}

pub fn path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.{LOCK}"))
}

/// Whether the worker, or its supervisor, is alive. A missing file is one that was removed.
pub fn is_held(folder: &Path, worker: &str, role: Role) -> io::Result<bool> {
    range_lock::is_held_at(&path(folder, worker), byte(role))
}

fn byte(role: Role) -> Range<u64> {
    match role {
        Role::Worker => 0..1,
        Role::Supervisor => 1..2,
    }
}
