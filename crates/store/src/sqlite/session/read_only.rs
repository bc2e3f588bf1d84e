//! Opening the database read-only: nothing is created, migrated or changed, neither the file nor those next to it.
//!
//! SQLite reads a write-ahead log through an index in shared memory. Even a read-only connection would create a missing
//! log and index, so the existing files decide how the database is opened:
//!
//! - log and index: as every process does, with locks, but the index is opened read-only. If no process maintains it,
//!   SQLite builds its own in memory.
//! - no log, or an empty one: the file is complete, and no other process has it open.
//! - a log without an index: no other process has it open either. SQLite builds the index in memory for a connection
//!   that has locked the file exclusively. The file may not be written, so it cannot be locked; hence a VFS without
//!   locks.
//!
//! Without locks another process may start to write at any time, and a read may then mix old and new pages. Such a read
//! counts only if the files are in the same state before and after it; otherwise they are opened again as they are by
//! then.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_state::{FileState, retry_while_changing, retry_while_readonly};
use super::gate::{GATE_TIMEOUT, Gate};
use super::migrate;
use super::open::{OpenDatabase, companion, log_length};
use crate::StoreError;
use sys::last_error;

/// Which files lie next to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalFiles {
    LogAndIndex,
    Log,
    Nothing,
}

impl WalFiles {
    fn of(database: &Path) -> Self {
        match (log_length(database) > 0, companion(database, "-shm").exists()) {
            (true, true) => Self::LogAndIndex,
            (true, false) => Self::Log,
            (false, true) if companion(database, "-wal").exists() => Self::LogAndIndex,
            (false, _) => Self::Nothing,
        }
    }

    /// Whether writers respect this reader.
    fn is_guarded(self) -> bool {
        match self {
            Self::LogAndIndex => true,
            Self::Log | Self::Nothing => false,
        }
    }

    fn parameters(self) -> &'static str {
        match self {
            Self::LogAndIndex => "mode=ro&readonly_shm=1",
            Self::Log => "mode=ro&vfs=unix-none",
            Self::Nothing => "mode=ro&immutable=1",
        }
    }
}

/// Opens a queue with the current schema for reading.
pub(crate) fn open(path: &Path) -> Result<OpenDatabase, StoreError> {
    retry_while_changing(|| match connect(path) {
        Ok(reader) => reader.unless_changed(check_schema(&reader, path)).map(|checked| {
            checked?;
            let mut opened = OpenDatabase::new(path, reader.connection, Gate::closed(path), Arc::default());
            opened.unlocked_state = reader.unlocked_state;
            Ok(opened)
        }),
        Err(error) => Some(Err(error)),
    })
}

fn check_schema(reader: &Reader, path: &Path) -> Result<(), StoreError> {
    let known = migrate::newest_version();
    match retry_while_readonly(|| migrate::schema(&reader.connection, path))? {
        found if found == known => Ok(()),
        found if found > known => Err(StoreError::TooNew { found, known }),
        // It would have to be migrated first.
        _ => Err(StoreError::ReadOnly),
    }
}

/// A connection that changes nothing.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    /// The state of the files, if they are read without locks.
    unlocked_state: Option<FileState>,
}

impl Reader {
    /// The result, unless the files changed during the read.
    pub(crate) fn unless_changed<T>(&self, found: T) -> Option<T> {
        (!self.unlocked_state.as_ref().is_some_and(FileState::has_changed)).then_some(found)
    }
}

/// Opens any database.
pub(crate) fn connect(path: &Path) -> Result<Reader, StoreError> {
    let cannot_open = |source| StoreError::CannotOpen { path: path.to_owned(), source };
    let state = FileState::of(path);
    let files = WalFiles::of(path);
    let address = address(path, files).map_err(|error| cannot_open(error.into()))?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    last_error::clear();
    let connection =
        Connection::open_with_flags(address, flags).map_err(|error| cannot_open(error.into()))?;
    connection.busy_timeout(GATE_TIMEOUT)?;
    // The last connection to close a database checkpoints and deletes its log. A read-only one must not even try.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if files == WalFiles::Log {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    // Sorting must not create temporary files.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(Reader { connection, unlocked_state: (!files.is_guarded()).then_some(state) })
}

/// The path as a URI: it need not be valid text, and may contain characters with a meaning in URIs.
fn address(path: &Path, files: WalFiles) -> std::io::Result<String> {
    let mut address = String::from("file://");
    for byte in std::path::absolute(path)?.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(byte) {
            address.push(char::from(*byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(address, "%{byte:02x}");
        }
    }
    address.push('?');
    address.push_str(files.parameters());
    Ok(address)
}
