//! Proof that a process lives: a lock that the kernel frees when it dies, however it dies. Unlike a pid it cannot be
//! confused by zombies, or by strangers that were given the same number.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{private, range_lock};

/// Whose life: each has a byte of its own in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Worker,
    Guardian,
}

/// Held until it is dropped or the process ends.
#[derive(Debug)]
pub struct LifeLine {
    file: File,
}

impl LifeLine {
    /// Begins to prove that this process lives. Fails if another process proves the same.
    pub fn hold(folder: &Path, worker: &str, role: Role) -> io::Result<Self> {
        let file = private::open_file(&path(folder, worker))?;
        if !range_lock::take(&file, byte(role))? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another process holds its lock"));
        }
        Ok(Self { file })
    }

    /// Leaves a sign of life beside the lock, which a process that hangs holds too.
    pub fn touch(&self) {
        // Nobody can be told if it fails.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

/// Whether the file was touched within this time.
pub fn was_touched_within(folder: &Path, worker: &str, span: Duration) -> bool {
    let touched = path(folder, worker).metadata().and_then(|meta| meta.modified());
    // A time in the future is a clock that was set back.
    touched.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < span))
}

pub fn path(folder: &Path, worker: &str) -> PathBuf {
    folder.join(format!("{worker}.lock"))
}

/// Whether the worker, or its guardian, lives. A file that is missing is one that was tidied away.
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
        Role::Guardian => 1..2,
    }
}
