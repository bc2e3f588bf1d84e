//! The folder in which a run works. It is in the build folder, so that a sync reaches a real disk, and is deleted
//! afterwards.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use store::Store;
use store::postgres::{Address, PostgresStore};
use store::sqlite::SqliteStore;
use sys::clock::SystemClock;

use crate::rig::spawn::Program;

/// The program in the folder of a run.
const PROGRAM: &str = "queuectl";

pub(crate) struct Workspace {
    folder: PathBuf,
    /// Held for the whole run, so that two runs do not disturb each other.
    _lock: File,
}

impl Workspace {
    /// Creates the folder, after removing the files of an interrupted run.
    pub(crate) fn new() -> Result<Self> {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(parent)?;
        let lock = File::create(parent.join("bench.lock"))?;
        lock.try_lock().context("another benchmark run is active")?;
        let folder = parent.join("bench");
        remove_if_present(&folder)?;
        fs::create_dir(&folder)?;
        let workspace = Self { folder, _lock: lock };
        workspace.copy_from_disk(Path::new(env!("CARGO_BIN_EXE_queuectl")), PROGRAM)?;
        Ok(workspace)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Another copy of the program, in the state right after an installation.
    pub(crate) fn copy_program(&self, name: &str) -> Result<PathBuf> {
        self.copy(Path::new(env!("CARGO_BIN_EXE_queuectl")), name)
    }

    /// A copy of any program, in the state right after an installation.
    pub(crate) fn copy(&self, program: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.folder.join(name);
        fs::copy(program, &copy).with_context(|| format!("failed to copy {}", program.display()))?;
        Ok(copy)
    }

    /// A program as it is after a reboot. One that was just written lies in memory in larger pieces, and starts faster.
    pub(crate) fn copy_from_disk(&self, program: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.copy(program, name)?;
        evict_from_page_cache(&copy)?;
        Ok(copy)
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// A new folder in the workspace, deleted on drop.
    pub(crate) fn home(&self, name: &str) -> Result<Home> {
        self.home_of(name, &self.program())
    }

    /// As `home`, for another copy of the program, or another program.
    pub(crate) fn home_of(&self, name: &str, program: &Path) -> Result<Home> {
        let folder = self.folder.join(name);
        fs::create_dir(&folder)?;
        Ok(Home { folder, program: program.to_owned(), server: None })
    }

    /// As `home`, for a queue on a server.
    pub(crate) fn home_with_server(&self, name: &str, server: Address) -> Result<Home> {
        let mut home = self.home(name)?;
        home.server = Some(server);
        Ok(home)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // The next run removes any remaining files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A queuectl home.
pub(crate) struct Home {
    folder: PathBuf,
    program: PathBuf,
    /// Where its queue is, if not in a file.
    server: Option<Address>,
}

impl Home {
    /// A queuectl command line with this home.
    pub(crate) fn queuectl(&self, arguments: &[&str]) -> Result<Program> {
        self.queuectl_at(&self.program, arguments)
    }

    /// As `queuectl`, with another copy of the program.
    pub(crate) fn queuectl_at(&self, program: &Path, arguments: &[&str]) -> Result<Program> {
        let server = self.server.as_ref().map(Address::to_string);
        let store = server.iter().flat_map(|server| [OsStr::new("--store"), OsStr::new(server)]);
        let before = [program.as_os_str(), OsStr::new("--home"), self.folder.as_os_str()];
        Program::new(before.into_iter().chain(store).chain(arguments.iter().map(OsStr::new)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The program that the command lines start.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The address of its queue, if that is not in a file.
    pub(crate) fn server(&self) -> Option<&Address> {
        self.server.as_ref()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("queue.db")
    }

    pub(crate) fn open(&self) -> Result<Box<dyn Store>> {
        Ok(match &self.server {
            Some(server) => Box::new(PostgresStore::open(server, None)?),
            None => Box::new(SqliteStore::open(&self.database(), Arc::new(SystemClock))?),
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes the kernel read the file from disk again at its next use.
fn evict_from_page_cache(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

fn remove_if_present(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
