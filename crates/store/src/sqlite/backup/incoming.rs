//! A backup that is about to replace the queue: copied next to it, examined, migrated, and prepared. The queue itself
//! is untouched until the backup is put in its place.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::log_files;
use super::lost::lose_all;
use super::restore;
use super::{RestoreError, RestoreSummary};
use crate::sqlite::session::examine::{Depth, examine};
use crate::sqlite::session::open::{check_files, companion, log_length};
use crate::sqlite::store::SqliteStore;
use crate::{Result, StoreError};
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::failpoint;
use sys::fs::lock::TimedLock;
use sys::fs::owner_only;

/// Suffixes of the files that may lie next to the copy.
const SIDE_FILES: [&str; 5] = ["", "-wal", "-shm", "-journal", "-gate"];

/// Deletes its files when dropped, unless it has replaced the queue.
#[derive(Debug)]
pub struct IncomingBackup {
    pub(super) database: PathBuf,
    pub(super) copy: PathBuf,
    /// The log folder of the queue, and the folder with the logs of the backup.
    pub(super) logs: PathBuf,
    pub(super) new_logs: PathBuf,
    /// Identifies this restore.
    pub(super) stamp: String,
    jobs: u64,
    lost: u64,
    /// Allows one restore at a time.
    _lock: TimedLock,
}

impl IncomingBackup {
    /// Stages a backup for the queue in `database`, on behalf of `by`.
    pub fn stage(
        file: &Path,
        database: &Path,
        logs: &Path,
        clock: Arc<dyn Clock>,
        by: &str,
    ) -> Result<Self, RestoreError> {
        let lock = restore_lock(database)?;
        let mut incoming = Self {
            database: database.to_owned(),
            copy: companion(database, ".restoring"),
            logs: logs.to_owned(),
            new_logs: companion(logs, ".restoring"),
            stamp: stamp(clock.as_ref()),
            jobs: 0,
            lost: 0,
            _lock: lock,
        };
        // Left by a restore that was killed.
        incoming.clear();
        let bad = |source| RestoreError::BadBackup { path: file.to_owned(), source };
        incoming.fetch(file).and_then(|()| incoming.examine(file)).map_err(bad)?;
        incoming.prepare(clock, by)?;
        Ok(incoming)
    }

    /// How many jobs it holds.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// Replaces the queue, which is kept next to it under a name that contains the stamp. `count_workers` is called
    /// inside the gate, where no worker can register any more.
    pub fn install(self, count_workers: &dyn Fn() -> usize) -> Result<RestoreSummary, RestoreError> {
        let kept = restore::replace(&self, count_workers)?;
        Ok(RestoreSummary { jobs: self.jobs, lost: self.lost, kept })
    }

    fn fetch(&self, file: &Path) -> Result<()> {
        let mut from = File::open(file).map_err(StoreError::cannot_open(file))?;
        if !from.metadata().map_err(StoreError::cannot_open(file))?.is_file() {
            return Err(not_a_store(file, "is not a file"));
        }
        if log_length(file) > 0 {
            return Err(not_a_store(
                file,
                "is a queue that is in use, not a backup (make one with `queuectl backup`)",
            ));
        }
        let copied = owner_only::replace_file(&self.copy).and_then(|mut to| {
            io::copy(&mut from, &mut to)?;
            to.sync_all()
        });
        copied.map_err(StoreError::unavailable)?;
        failpoint::hit("restore.fetched");
        Ok(())
    }

    /// Refuses a file that is not a queue, has a newer schema, or is damaged.
    fn examine(&self, file: &Path) -> Result<()> {
        if self.copy.metadata().is_ok_and(|meta| meta.len() == 0) {
            return Err(not_a_store(file, "is empty"));
        }
        let found = examine(&self.copy, Depth::Full).map_err(|error| report_as(file, error))?;
        if let Some(damage) = found.damage.into_iter().next() {
            return Err(StoreError::Corrupt { source: damage.into() });
        }
        if is_truncated(&self.copy).map_err(StoreError::unavailable)? {
            return Err(StoreError::Corrupt { source: "the file is truncated".into() });
        }
        if found.schema == 0 {
            return Err(not_a_store(file, "does not contain a queue"));
        }
        if found.schema > found.newest_schema {
            return Err(StoreError::TooNew { found: found.schema.into(), known: found.newest_schema.into() });
        }
        Ok(())
    }

    fn prepare(&mut self, clock: Arc<dyn Clock>, by: &str) -> Result<()> {
        let store = SqliteStore::open(&self.copy, clock)?;
        self.lost = store.shared().transact("lose_running_attempts", |tx| lose_all(tx, by, &self.stamp))?;
        self.jobs = store.shared().count_jobs()?;
        owner_only::add_folder(&self.new_logs).map_err(StoreError::unavailable)?;
        store.with_connection(|connection| log_files::extract(connection, &self.new_logs))?;
        failpoint::hit("restore.prepared");
        Ok(())
    }

    fn clear(&self) {
        for suffix in SIDE_FILES {
            // Most of these do not exist.
            let _ = std::fs::remove_file(companion(&self.copy, suffix));
        }
        let _ = std::fs::remove_dir_all(&self.new_logs);
    }
}

impl Drop for IncomingBackup {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether a database is shorter than its header says. SQLite reads the missing end of the last page as zeros, which
/// may be what it contained.
fn is_truncated(database: &Path) -> io::Result<bool> {
    /// Header offsets of the page size and the number of pages.
    const PAGE_SIZE: usize = 16;
    const PAGES: usize = 28;
    let mut header = [0; PAGES + 4];
    let mut file = File::open(database)?;
    file.read_exact(&mut header)?;
    let page_size = match u16::from_be_bytes([header[PAGE_SIZE], header[PAGE_SIZE + 1]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = header[PAGES..].iter().fold(0, |pages, byte| pages << 8 | u64::from(*byte));
    Ok(file.metadata()?.len() < page_size * pages)
}

/// The current time in a form that fits into a file name.
fn stamp(clock: &dyn Clock) -> String {
    let now = Timestamp::from_millis(clock.wall_millis()).to_string();
    now.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn restore_lock(database: &Path) -> Result<TimedLock, RestoreError> {
    check_files(database)?;
    let taken = owner_only::open_file(&companion(database, "-restore")).and_then(|file| {
        let lock = TimedLock::new(file);
        Ok(lock.take_within(Duration::ZERO)?.then_some(lock))
    });
    taken.map_err(StoreError::cannot_open(database))?.ok_or(RestoreError::UnderWay)
}

fn not_a_store(path: &Path, problem: &'static str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), problem }
}

/// Reports the file that the caller named, not our copy.
fn report_as(file: &Path, error: StoreError) -> StoreError {
    if let StoreError::NotAStore { problem, .. } = error { not_a_store(file, problem) } else { error }
}
