//! A backup that is about to become the queue: copied beside it, examined, migrated, and made ready to be worked on.
//! Until it is put in its place nothing of the queue is touched.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::log_files;
use super::restore;
use crate::sqlite::session::examine::{Depth, examine};
use crate::sqlite::session::open::{beside, check_files, log_length};
use crate::sqlite::store::SqliteStore;
use crate::{RestoreError, Restored, StoreError};
use domain::values::timestamp::Timestamp;
use sys::clock::Clock;
use sys::failpoint;
use sys::fs::lock::PatientLock;
use sys::fs::owner_only;

/// What may lie beside the copy.
const COMPANIONS: [&str; 5] = ["", "-wal", "-shm", "-journal", "-gate"];

/// Goes when it is dropped, unless it was put in its place.
#[derive(Debug)]
pub struct Incoming {
    pub(super) database: PathBuf,
    /// The copy.
    pub(super) copy: PathBuf,
    /// Where log files belong, and where those of the backup are.
    pub(super) logs: PathBuf,
    pub(super) new_logs: PathBuf,
    /// What this restore is known by.
    pub(super) stamp: String,
    jobs: u64,
    lost: u64,
    /// One restore at a time.
    _turn: PatientLock,
}

impl Incoming {
    /// Takes a backup in for the queue in `database`, in the name of `by`.
    pub fn take(
        file: &Path,
        database: &Path,
        logs: &Path,
        clock: Arc<dyn Clock>,
        by: &str,
    ) -> Result<Self, RestoreError> {
        let turn = turn(database)?;
        let mut incoming = Self {
            database: database.to_owned(),
            copy: beside(database, ".restoring"),
            logs: logs.to_owned(),
            new_logs: beside(logs, ".restoring"),
            stamp: stamp(clock.as_ref()),
            jobs: 0,
            lost: 0,
            _turn: turn,
        };
        // Of one that was killed.
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

    /// Puts it in the place of the queue, which is kept beside it under a name with the stamp in it. `count_workers` is asked
    /// while nobody can register any more.
    pub fn put(self, count_workers: &dyn Fn() -> usize) -> Result<Restored, RestoreError> {
        let kept = restore::put(&self, count_workers)?;
        Ok(Restored { jobs: self.jobs, lost: self.lost, kept })
    }

    fn fetch(&self, file: &Path) -> Result<(), StoreError> {
        let cannot_open =
            |error: io::Error| StoreError::CannotOpen { path: file.to_owned(), source: error.into() };
        let mut from = File::open(file).map_err(cannot_open)?;
        if !from.metadata().map_err(cannot_open)?.is_file() {
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
        copied.map_err(|error| StoreError::Unavailable { source: error.into() })?;
        failpoint::hit("restore.fetched");
        Ok(())
    }

    /// Refuses what is no queue, a newer one, or damaged.
    fn examine(&self, file: &Path) -> Result<(), StoreError> {
        if self.copy.metadata().is_ok_and(|meta| meta.len() == 0) {
            return Err(not_a_store(file, "is empty"));
        }
        let found = examine(&self.copy, Depth::Full).map_err(|error| in_the_name_of(file, error))?;
        if let Some(damage) = found.damage.into_iter().next() {
            return Err(StoreError::Corrupt { source: damage.into() });
        }
        if is_cut_off(&self.copy).map_err(|error| StoreError::Unavailable { source: error.into() })? {
            return Err(StoreError::Corrupt { source: "its end is missing".into() });
        }
        if found.schema == 0 {
            return Err(not_a_store(file, "holds no queue"));
        }
        if found.schema > found.newest_schema {
            return Err(StoreError::TooNew { found: found.schema.into(), known: found.newest_schema.into() });
        }
        Ok(())
    }

    fn prepare(&mut self, clock: Arc<dyn Clock>, by: &str) -> Result<(), StoreError> {
        let store = SqliteStore::open(&self.copy, clock)?;
        self.lost = store.lose_what_runs(by, &self.stamp)?;
        self.jobs = store.count_jobs()?;
        owner_only::add_folder(&self.new_logs)
            .map_err(|error| StoreError::Unavailable { source: error.into() })?;
        store.with_connection(|connection| log_files::take(connection, &self.new_logs))?;
        failpoint::hit("restore.prepared");
        Ok(())
    }

    fn clear(&self) {
        for companion in COMPANIONS {
            // What is not there need not go.
            let _ = std::fs::remove_file(beside(&self.copy, companion));
        }
        let _ = std::fs::remove_dir_all(&self.new_logs);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether a database is shorter than its first page says. SQLite takes the missing end of the last page for zeros, which it
/// may well have been.
fn is_cut_off(database: &Path) -> io::Result<bool> {
    /// Where the header has the size of a page and the number of pages.
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

/// The time, as it can be part of a file name.
fn stamp(clock: &dyn Clock) -> String {
    let now = Timestamp::from_millis(clock.wall_millis()).to_string();
    now.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn turn(database: &Path) -> Result<PatientLock, RestoreError> {
    check_files(database)?;
    let taken = owner_only::open_file(&beside(database, "-restore")).and_then(|file| {
        let turn = PatientLock::new(file);
        Ok(turn.take_within(Duration::ZERO)?.then_some(turn))
    });
    let taken =
        taken.map_err(|error| StoreError::CannotOpen { path: database.to_owned(), source: error.into() })?;
    taken.ok_or(RestoreError::UnderWay)
}

fn not_a_store(path: &Path, problem: &'static str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), problem }
}

/// Tells of the file that somebody named, not of our copy.
fn in_the_name_of(file: &Path, error: StoreError) -> StoreError {
    if let StoreError::NotAStore { problem, .. } = error { not_a_store(file, problem) } else { error }
}
