//! The folder that a run works in: on the disk of the build, so that a sync is a real one, and gone afterwards.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use store::sqlite::SqliteStore;
use sys::clock::SystemClock;

use crate::spawn::Program;

/// The program in the folder of a run.
const PROGRAM: &str = "queuectl";

pub(crate) struct Workspace {
    folder: PathBuf,
    /// Held while the run lasts, so that two runs do not disturb each other.
    _lock: File,
}

impl Workspace {
    /// Makes the folder, without what an interrupted run has left in it.
    pub(crate) fn new() -> Result<Self> {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(parent)?;
        let lock = File::create(parent.join("bench.lock"))?;
        lock.try_lock().context("another run is under way")?;
        let folder = parent.join("bench");
        remove_if_there(&folder)?;
        fs::create_dir(&folder)?;
        let workspace = Self { folder, _lock: lock };
        workspace.copy_from_disk(Path::new(env!("CARGO_BIN_EXE_queuectl")), PROGRAM)?;
        Ok(workspace)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The program once more, as it is right after somebody installed it.
    pub(crate) fn copy_program(&self, name: &str) -> Result<PathBuf> {
        let copy = self.folder.join(name);
        fs::copy(env!("CARGO_BIN_EXE_queuectl"), &copy)?;
        Ok(copy)
    }

    /// A program as it is after a reboot. One that was just written lies in memory in larger pieces, and starts faster.
    pub(crate) fn copy_from_disk(&self, program: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.folder.join(name);
        fs::copy(program, &copy)?;
        forget(&copy)?;
        Ok(copy)
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// A new folder in it that goes when it is dropped.
    pub(crate) fn home(&self, name: &str) -> Result<Home> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder)?;
        Ok(Home { folder, program: self.program() })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A home of queuectl.
pub(crate) struct Home {
    folder: PathBuf,
    program: PathBuf,
}

impl Home {
    /// A command line of queuectl here.
    pub(crate) fn queuectl(&self, arguments: &[&str]) -> Result<Program> {
        self.queuectl_at(&self.program, arguments)
    }

    /// The same with another copy of the program.
    pub(crate) fn queuectl_at(&self, program: &Path, arguments: &[&str]) -> Result<Program> {
        let before = [program.as_os_str(), OsStr::new("--home"), self.folder.as_os_str()];
        Program::new(before.into_iter().chain(arguments.iter().map(OsStr::new)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("queue.db")
    }

    pub(crate) fn open(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::open(&self.database(), Arc::new(SystemClock))?)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes the system read a file from the disk again.
fn forget(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

fn remove_if_there(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
