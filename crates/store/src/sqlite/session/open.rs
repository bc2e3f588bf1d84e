//! Opening the database file: checks on the file, and the configuration of the connection.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_state::FileState;
use super::gate::{GATE_TIMEOUT, Gate};
use super::migrate;
use crate::rows::jobs::environments::CachedEnvironment;
use crate::{Result, StoreError};
use domain::settings::Durability;
use sys::fs::owner_access::OwnerAccess;
use sys::fs::{disk, owner_only, ownership};
use sys::guards;
use sys::guards::Guard;
use sys::last_error;

/// Older libraries can lose commits when one process writes while another checkpoints.
const NEEDED_LIBRARY: (i32, &str) = (3_051_003, "3.51.3");
const STATEMENT_CACHE_SIZE: usize = 64;
/// No database is shorter. SQLite treats a one-byte file as empty and overwrites it.
const MIN_DATABASE_BYTES: u64 = 512;

/// A worker that waits for a lock sends no heartbeat. It waits for this fraction of a lease at most, which leaves time
/// for its other work before others take it for dead.
const LOCK_TIMEOUTS_PER_LEASE: u32 = 4;
/// Even a worker with a very short lease waits this long for a slow writer.
const MIN_LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// An open database.
#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) connection: Connection,
    pub(crate) gate: Gate,
    /// Pages in the write-ahead log after the last commit of this connection.
    pub(crate) wal_pages: Arc<AtomicI32>,
    /// How long to wait for a lock.
    pub(crate) lock_timeout: Cell<Duration>,
    /// The durability of this connection's commits.
    pub(crate) durability: Cell<Durability>,
    /// Its worker finishes what it runs under a schema that is newer than this program.
    pub(crate) only_finishes: Cell<bool>,
    /// The path of the write-ahead log.
    log: PathBuf,
    /// The path of the bell that workers listen to.
    pub(crate) bell: PathBuf,
    /// The path of the database; see [`Self::folder`].
    pub(crate) database: PathBuf,
    folder: OnceCell<PathBuf>,
    /// Most jobs of a worker share one environment.
    pub(crate) last_environment: RefCell<Option<CachedEnvironment>>,
    /// The state of the files when they were opened, if they are read without locks.
    pub(crate) unlocked_state: Option<FileState>,
}

impl OpenDatabase {
    pub(crate) fn new(path: &Path, connection: Connection, gate: Gate, wal_pages: Arc<AtomicI32>) -> Self {
        Self {
            connection,
            gate,
            wal_pages,
            lock_timeout: Cell::new(GATE_TIMEOUT),
            // The default of a new connection.
            durability: Cell::new(Durability::Full),
            only_finishes: Cell::new(false),
            log: companion(path, "-wal"),
            bell: companion(path, "-bell"),
            database: path.to_owned(),
            folder: OnceCell::new(),
            last_environment: RefCell::default(),
            unlocked_state: None,
        }
    }

    pub(crate) fn set_durability(&self, durability: Durability) -> Result<()> {
        if self.durability.get() != durability && !guards::is_off(Guard::Durability) {
            self.connection.pragma_update(None, "synchronous", durability.name())?;
            self.durability.set(durability);
        }
        Ok(())
    }

    /// Bounds lock waits to what a worker with this lease can afford.
    pub(crate) fn limit_lock_timeout(&self, lease: Duration) -> Result<()> {
        self.gate.disable_stop_deferral();
        self.set_lock_timeout((lease / LOCK_TIMEOUTS_PER_LEASE).clamp(MIN_LOCK_TIMEOUT, GATE_TIMEOUT))
    }

    pub(crate) fn set_lock_timeout(&self, lock_timeout: Duration) -> Result<()> {
        if self.lock_timeout.replace(lock_timeout) != lock_timeout {
            self.connection.busy_timeout(lock_timeout)?;
        }
        Ok(())
    }

    /// Makes durable what readers may already see. A commit whose process was killed before its sync is visible to the
    /// next process that opens the store, but a power cut would lose it.
    pub(crate) fn sync_log(&self) -> Result<()> {
        if self.durability.get() != Durability::Full || guards::is_off(Guard::Durability) {
            return Ok(());
        }
        // Unlike on the database, SQLite holds no locks on the log that closing a descriptor would drop.
        match File::open(&self.log).and_then(|log| log.sync_data()) {
            // Without a log everything is in the database, and was synced on the way.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result.map_err(StoreError::unavailable),
        }
    }

    /// The folder of the database. Files of workers inside it are stored with a relative path, so that a process finds
    /// them even if the folder was renamed or is mounted elsewhere.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.get_or_init(|| {
            let folder = owner_only::folder_of(&self.database);
            folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
        })
    }

    /// Whether it is read without locks and was changed since it was opened.
    pub(crate) fn has_changed(&self) -> bool {
        self.unlocked_state.as_ref().is_some_and(FileState::has_changed)
    }
}

/// Opens the database, and creates it if it does not exist. Waits this long for a lock, then and later.
pub(crate) fn open(path: &Path, lock_timeout: Duration) -> Result<OpenDatabase> {
    check_place(path)?;
    // SQLite opens its files here, and keeps them open. As root, it gives them to the owner of the database, whatever they
    // are.
    let _access = OwnerAccess::take().map_err(StoreError::cannot_open(path))?;
    let found = inspect_files(path)?;
    let gate = Gate::open(path)?;
    ensure_file(path, found.database.as_ref(), &gate)?;
    let log_is_new = found.log.is_none_or(|log| log.len() == 0);

    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    last_error::clear();
    let mut connection = Connection::open_with_flags(path, flags).map_err(StoreError::cannot_open(path))?;
    let wal_pages = configure(&mut connection)?;
    let opened = OpenDatabase::new(path, connection, gate, wal_pages);
    opened.set_lock_timeout(lock_timeout)?;
    migrate::bring_up_to_date(&opened, path).map_err(|error| error.after_waiting(lock_timeout))?;
    if log_is_new {
        // The first read created the file. Every process that finds it empty syncs its directory entry before it
        // commits anything.
        owner_only::sync_entry(path).map_err(StoreError::cannot_open(path))?;
    }
    Ok(opened)
}

/// Refuses a library or a filesystem that is unsafe for a queue.
pub(crate) fn check_place(path: &Path) -> Result<()> {
    if rusqlite::version_number() < NEEDED_LIBRARY.0 {
        let (found, needed) = (rusqlite::version(), NEEDED_LIBRARY.1);
        return Err(StoreError::Obstacle {
            problem: format!("the SQLite library is {found}, but {needed} or newer is required"),
            advice: "use a queuectl that was built with its bundled SQLite",
        });
    }
    let kind =
        disk::network_filesystem(owner_only::folder_of(path)).map_err(StoreError::cannot_open(path))?;
    match kind {
        Some(kind) => Err(network_filesystem(path, kind)),
        None => Ok(()),
    }
}

/// The error of a path on a network filesystem of this kind.
pub fn network_filesystem(path: &Path, kind: &str) -> StoreError {
    let path = path.display();
    StoreError::Obstacle {
        problem: format!(
            "`{path}` is on {kind}, a network filesystem, where SQLite's locks cannot be trusted"
        ),
        advice: "choose a directory on a local disk with --home",
    }
}

/// The files that existed before anything was created.
struct FoundFiles {
    database: Option<Metadata>,
    log: Option<Metadata>,
}

/// Refuses files that other users own or can change, and a folder in which they could place files.
pub fn check_files(path: &Path) -> Result<()> {
    inspect_files(path).map(drop)
}

/// As `check_files`. SQLite opens the files by name, so no other user may be able to replace them.
fn inspect_files(path: &Path) -> Result<FoundFiles> {
    let folder = owner_only::folder_of(path);
    ownership::check_trusted(folder, &folder.metadata().map_err(StoreError::cannot_open(path))?)?;
    let inspect = |path: &Path| match path.symlink_metadata() {
        Ok(meta) => {
            // Other file types are refused later, for what they are.
            if meta.is_file() || meta.is_symlink() {
                ownership::check(path, &meta)?;
            }
            Ok(Some(meta))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::cannot_open(path)(error)),
    };
    let found = FoundFiles { database: inspect(path)?, log: inspect(&companion(path, "-wal"))? };
    inspect(&companion(path, "-shm"))?;
    Ok(found)
}

/// Creates the file if it is missing, and refuses one that cannot be a queue before SQLite touches it.
fn ensure_file(path: &Path, found: Option<&Metadata>, gate: &Gate) -> Result<()> {
    match found {
        Some(meta) => {
            let is_lost = meta.len() == 0 && gate.is_initialized().map_err(StoreError::cannot_open(path))?;
            check_kind(path, meta, is_lost)
        }
        None => owner_only::open_file(path).map(drop).map_err(StoreError::cannot_open(path)),
    }
}

/// Refuses a file that cannot be a queue, including an empty one if a queue `is_lost`. The emptiness is checked again,
/// because another process may be creating the queue: the gate records it after the file has content.
pub(crate) fn check_kind(path: &Path, meta: &Metadata, is_lost: bool) -> Result<()> {
    let not_a_store = |problem| Err(StoreError::NotAStore { path: path.to_owned(), problem });
    if !meta.is_file() {
        return not_a_store("is not a file");
    }
    if is_lost && is_empty(path) {
        return not_a_store("is empty, but it contained a queue before");
    }
    if (1..MIN_DATABASE_BYTES).contains(&meta.len()) {
        return not_a_store("is not a database");
    }
    Ok(())
}

fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.len() == 0)
}

/// The path of a file that belongs to the database.
pub(crate) fn companion(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The length of the write-ahead log; 0 if there is none.
pub(crate) fn log_length(database: &Path) -> u64 {
    companion(database, "-wal").metadata().map_or(0, |meta| meta.len())
}

fn configure(connection: &mut Connection) -> Result<Arc<AtomicI32>> {
    connection.busy_timeout(GATE_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
    // Plans must not depend on bound values. Otherwise statements on tables with partial indexes are recompiled at each
    // binding, which took a third of the time of an idle worker.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // We checkpoint ourselves: after the gate, and not whenever a process exits.
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
