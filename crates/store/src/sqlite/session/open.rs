//! Opening the database file: what it must be, and how the connection is set up.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_state::Picture;
use super::gate::{Gate, PATIENCE};
use super::migrate;
use crate::StoreError;
use crate::sqlite::jobs::environments::Known;
use domain::settings::Durability;
use sys::bell::Bell;
use sys::fs::{disk, owner_only, ownership};
use sys::guards;
use sys::guards::Guard;
use sys::last_error;

/// Older libraries can lose commits when one process writes while another checkpoints.
const NEEDED_LIBRARY: (i32, &str) = (3_051_003, "3.51.3");
const STATEMENTS_KEPT: usize = 64;
/// No database is shorter. SQLite takes a file of one byte for an empty one and writes over it.
const MIN_DATABASE_BYTES: u64 = 512;

/// A worker that waits shows nobody that it lives: it does so for this part of a lease at most, which leaves time for
/// what else it has to do before others give it up.
const WAITS_PER_LEASE: u32 = 4;
/// Even a worker with a very short lease waits for writers that are merely slow.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(100);

/// An open database.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) gate: Gate,
    /// Pages in the write-ahead log after the last commit of this connection.
    pub(crate) wal_pages: Arc<AtomicI32>,
    /// How long to wait where others are in the way.
    pub(crate) patience: Cell<Duration>,
    /// What the connection's commits wait for.
    pub(crate) durability: Cell<Durability>,
    /// Where the write-ahead log is.
    log: PathBuf,
    /// Where the bell is that workers listen to.
    pub(crate) bell: PathBuf,
    /// Where the database is; see [`Self::folder`].
    database: PathBuf,
    folder: OnceCell<PathBuf>,
    /// Most jobs of a worker come with the same one.
    pub(crate) last_environment: RefCell<Option<Known>>,
    /// What the files looked like, where they are read without locks.
    pub(crate) unguarded: Option<Picture>,
}

impl Opened {
    pub(crate) fn new(path: &Path, connection: Connection, gate: Gate, wal_pages: Arc<AtomicI32>) -> Self {
        Self {
            connection,
            gate,
            wal_pages,
            patience: Cell::new(PATIENCE),
            // A connection begins with full durability.
            durability: Cell::new(Durability::Full),
            log: beside(path, "-wal"),
            bell: beside(path, "-bell"),
            database: path.to_owned(),
            folder: OnceCell::new(),
            last_environment: RefCell::default(),
            unguarded: None,
        }
    }

    /// Lets commits wait for what the setting says.
    pub(crate) fn adopt(&self, durability: Durability) -> Result<(), StoreError> {
        if self.durability.get() != durability && !guards::is_off(Guard::Durability) {
            self.connection.pragma_update(None, "synchronous", durability.name())?;
            self.durability.set(durability);
        }
        Ok(())
    }

    /// Waits for others no longer than one whose leases are this long can afford.
    pub(crate) fn adopt_patience(&self, lease: Duration) -> Result<(), StoreError> {
        self.gate.defer_no_stops();
        let patience = (lease / WAITS_PER_LEASE).clamp(SHORTEST_PATIENCE, PATIENCE);
        if self.patience.replace(patience) != patience {
            self.connection.busy_timeout(patience)?;
        }
        Ok(())
    }

    /// Makes sure that what can be read can also be promised. A commit whose process was killed before its sync is found
    /// by the next one that opens the store; it would be lost in a power cut.
    pub(crate) fn sync_log(&self) -> Result<(), StoreError> {
        if self.durability.get() != Durability::Full || guards::is_off(Guard::Durability) {
            return Ok(());
        }
        // Unlike the database, the log has no locks that would go when another descriptor of it is closed.
        match File::open(&self.log).and_then(|log| log.sync_data()) {
            // Without a log everything is in the database, and was synced on the way.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(|error| StoreError::Unavailable { source: error.into() }),
        }
    }

    /// The folder of the database. Workers whose files are in it are stored by a path relative to it, so that a process
    /// that knows the folder by another name, because it was renamed or mounted elsewhere, finds them all the same.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.get_or_init(|| {
            let folder = owner_only::folder_of(&self.database);
            folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
        })
    }

    /// Where the database is, if it was read without locks and somebody has changed it since it was opened.
    pub(crate) fn disturbed(&self) -> Option<PathBuf> {
        let picture = self.unguarded.as_ref().filter(|picture| picture.is_outdated())?;
        Some(picture.database().to_owned())
    }

    /// The bell that is rung when there may be work.
    pub(crate) fn open_bell(&self) -> Result<Bell, StoreError> {
        Bell::open(&self.bell)
            .map_err(|error| StoreError::CannotOpen { path: self.bell.clone(), source: error.into() })
    }
}

pub(crate) fn open(path: &Path) -> Result<Opened, StoreError> {
    check_place(path)?;
    let cannot_open =
        |error: io::Error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() };
    let found = look(path)?;
    let gate = Gate::open(path)?;
    ensure_file(path, found.database.as_ref(), &gate)?;
    let log_is_new = found.log.is_none_or(|log| log.len() == 0);

    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    last_error::clear();
    let mut connection = Connection::open_with_flags(path, flags)
        .map_err(|error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() })?;
    let wal_pages = configure(&mut connection)?;
    migrate::bring_up_to_date(&connection, &gate, path)?;
    if log_is_new {
        // Reading has made the file. Whoever finds it empty sees to it that it stays, before anything is committed.
        owner_only::sync_entry(path).map_err(cannot_open)?;
    }
    Ok(Opened::new(path, connection, gate, wal_pages))
}

/// Refuses a library or a filesystem to which nobody should entrust a queue.
pub(crate) fn check_place(path: &Path) -> Result<(), StoreError> {
    if rusqlite::version_number() < NEEDED_LIBRARY.0 {
        return Err(StoreError::OldLibrary { found: rusqlite::version(), needed: NEEDED_LIBRARY.1 });
    }
    let kind = disk::network_filesystem(owner_only::folder_of(path))
        .map_err(|error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() })?;
    match kind {
        Some(kind) => Err(StoreError::NetworkFilesystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// What was there before anything was made.
struct FoundFiles {
    database: Option<Metadata>,
    log: Option<Metadata>,
}

/// Refuses files that are not this user's alone, and a folder in which others could put theirs.
pub fn check_files(path: &Path) -> Result<(), StoreError> {
    look(path).map(drop)
}

/// The same. SQLite opens the files by their names, so only this user may be able to change what has these names.
fn look(path: &Path) -> Result<FoundFiles, StoreError> {
    let folder = owner_only::folder_of(path);
    let cannot_open =
        |error: io::Error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() };
    ownership::check_trusted(folder, &folder.metadata().map_err(cannot_open)?)?;
    let look_at = |path: &Path| match path.symlink_metadata() {
        Ok(meta) => {
            // What is neither file nor link is refused for being that.
            if meta.is_file() || meta.is_symlink() {
                ownership::check(path, &meta)?;
            }
            Ok(Some(meta))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_open(error)),
    };
    let found = FoundFiles { database: look_at(path)?, log: look_at(&beside(path, "-wal"))? };
    look_at(&beside(path, "-shm"))?;
    Ok(found)
}

/// Makes the file if it is missing, and refuses one that cannot be a queue before SQLite touches it.
fn ensure_file(path: &Path, found: Option<&Metadata>, gate: &Gate) -> Result<(), StoreError> {
    let cannot_open =
        |error: io::Error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() };
    match found {
        Some(meta) => {
            let is_lost = meta.len() == 0 && gate.remembers_a_queue().map_err(cannot_open)?;
            check_kind(path, meta, is_lost)
        }
        None => owner_only::open_file(path).map(drop).map_err(cannot_open),
    }
}

/// Refuses what cannot be a queue, also an empty file where one `is_lost`. Then the file is looked at again, because
/// another process may be making the queue: it is remembered when the file is not empty any more.
pub(crate) fn check_kind(path: &Path, meta: &Metadata, is_lost: bool) -> Result<(), StoreError> {
    let not_a_store = |problem| Err(StoreError::NotAStore { path: path.to_owned(), problem });
    if !meta.is_file() {
        return not_a_store("is not a file");
    }
    if is_lost && is_empty(path) {
        return not_a_store("is empty, but a queue was there");
    }
    if (1..MIN_DATABASE_BYTES).contains(&meta.len()) {
        return not_a_store("is not a database");
    }
    Ok(())
}

fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.len() == 0)
}

/// A file that goes with the database.
pub(crate) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The length of the write-ahead log; 0 if there is none.
pub(crate) fn log_length(database: &Path) -> u64 {
    beside(database, "-wal").metadata().map_or(0, |meta| meta.len())
}

fn configure(connection: &mut Connection) -> Result<Arc<AtomicI32>, StoreError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // Plans do not depend on the values that are bound. Otherwise statements on tables with partial indexes are compiled
    // anew each time a value is bound, which took a third of the time of an idle worker.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Checkpoints are ours to time: after the gate, and not whenever a process ends.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if guards::is_off(Guard::Durability) {
        connection.pragma_update(None, "synchronous", "off")?;
    }
    let wal_pages = Arc::new(AtomicI32::new(0));
    let counter = Arc::clone(&wal_pages);
    connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
        counter.store(pages, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(wal_pages)
}
