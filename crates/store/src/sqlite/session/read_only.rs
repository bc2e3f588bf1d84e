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
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_state::{FileState, retry_while_changing, retry_while_readonly};
use super::gate::{GATE_TIMEOUT, Gate};
use super::migrate;
use super::open::{OpenDatabase, companion, log_length};
use crate::{Result, StoreError};
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
        let exists = |suffix| companion(database, suffix).exists();
        match (exists("-wal") && exists("-shm"), log_length(database) > 0) {
            (true, _) => Self::LogAndIndex,
            (false, true) => Self::Log,
            (false, false) => Self::Nothing,
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

/// Opens a queue with the current schema for reading, which waits this long for a lock.
pub(crate) fn open(path: &Path, lock_timeout: Duration) -> Result<OpenDatabase> {
    retry_while_changing(|| {
        let opened = connect(path)?;
        opened.connection.busy_timeout(lock_timeout)?;
        opened.lock_timeout.set(lock_timeout);
        let checked = check_schema(&opened.connection, path);
        Ok((!opened.has_changed()).then(|| checked.map(|()| opened)))
    })
}

fn check_schema(connection: &Connection, path: &Path) -> Result<()> {
    let known = migrate::newest_version();
    match retry_while_readonly(|| migrate::schema(connection, path))? {
        found if found == known => Ok(()),
        found if found > known => Err(StoreError::TooNew { found, known }),
        // It would have to be migrated first.
        _ => Err(StoreError::ReadOnly),
    }
}

/// Opens any database, with a connection that changes nothing.
pub(crate) fn connect(path: &Path) -> Result<OpenDatabase> {
    let state = FileState::of(path);
    let files = WalFiles::of(path);
    let address = address(path, files).map_err(StoreError::cannot_open(path))?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    last_error::clear();
    let connection = Connection::open_with_flags(address, flags).map_err(StoreError::cannot_open(path))?;
    connection.busy_timeout(GATE_TIMEOUT)?;
    // The last connection to close a database checkpoints and deletes its log. A read-only one must not even try.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if files == WalFiles::Log {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    // Sorting must not create temporary files.
    connection.pragma_update(None, "temp_store", "memory")?;
    let mut opened = OpenDatabase::new(path, connection, Gate::closed(path), Arc::default());
    // With log and index, writers respect this reader.
    opened.unlocked_state = (files != WalFiles::LogAndIndex).then_some(state);
    Ok(opened)
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
    Ok(format!("{address}?{}", files.parameters()))
}
