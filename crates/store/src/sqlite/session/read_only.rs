//! Opening the database to look at it: nothing is made, migrated or changed, neither the file nor what lies beside it.
//!
//! SQLite reads a write-ahead log by way of an index in shared memory. A connection that may not write would still make
//! log and index where they are missing, so what is there decides how it is opened:
//!
//! - both: as everybody does it, with locks, but the index is only read. Where nobody keeps it, SQLite makes its own in
//!   memory.
//! - no log, or an empty one: all is in the file, and nobody else has it open.
//! - a log without an index: nobody else has it open either. SQLite makes the index in memory for whoever has the file
//!   locked for itself; it may not be written, so it cannot be locked, hence a file system layer that locks nothing.
//!
//! Without locks nobody is kept from writing a moment later, and what is read then may be half of this and half of that.
//! Such a read counts only if the files look the same before and after; else they are opened anew, as they are by then.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file_state::{Picture, look_until_undisturbed, past_the_moment};
use super::gate::{Gate, PATIENCE};
use super::migrate;
use super::migrate::SCHEMA_VERSION;
use super::open::{Opened, beside, log_length};
use crate::StoreError;
use sys::last_error;

/// What lies beside the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    LogAndIndex,
    Log,
    Nothing,
}

impl Beside {
    fn of(database: &Path) -> Self {
        match (log_length(database) > 0, beside(database, "-shm").exists()) {
            (true, true) => Self::LogAndIndex,
            (true, false) => Self::Log,
            (false, true) if beside(database, "-wal").exists() => Self::LogAndIndex,
            (false, _) => Self::Nothing,
        }
    }

    /// Whether whoever writes respects the reader.
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

/// A queue whose schema is current, for reading.
pub(crate) fn open(path: &Path) -> Result<Opened, StoreError> {
    look_until_undisturbed(|| match connect(path) {
        Ok(reader) => reader.answer(understood(&reader, path)).map(|understood| {
            understood?;
            let mut opened = Opened::new(path, reader.connection, Gate::closed(path), Arc::default());
            opened.unguarded = reader.unguarded;
            Ok(opened)
        }),
        Err(error) => Some(Err(error)),
    })
}

fn understood(reader: &Reader, path: &Path) -> Result<(), StoreError> {
    match past_the_moment(|| migrate::schema(&reader.connection, path))? {
        SCHEMA_VERSION => Ok(()),
        newer if newer > SCHEMA_VERSION => Err(StoreError::TooNew { found: newer, known: SCHEMA_VERSION }),
        // It would have to be migrated first.
        _ => Err(StoreError::ReadOnly),
    }
}

/// A connection that changes nothing.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    /// What the files looked like, where there are no locks to rely on.
    unguarded: Option<Picture>,
}

impl Reader {
    /// What was found, unless that cannot be relied on.
    pub(crate) fn answer<T>(&self, found: T) -> Option<T> {
        (!self.unguarded.as_ref().is_some_and(Picture::is_outdated)).then_some(found)
    }
}

/// Any database.
pub(crate) fn connect(path: &Path) -> Result<Reader, StoreError> {
    let cannot_open = |source| StoreError::CannotOpen { path: path.to_owned(), source };
    let picture = Picture::of(path);
    let beside = Beside::of(path);
    let address = address(path, beside).map_err(|error| cannot_open(error.into()))?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    last_error::clear();
    let connection =
        Connection::open_with_flags(address, flags).map_err(|error| cannot_open(error.into()))?;
    connection.busy_timeout(PATIENCE)?;
    // The last one to close a database folds its log in and deletes it. One that may not write does not even try.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if beside == Beside::Log {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    // Whatever has to be sorted stays in memory.
    connection.pragma_update(None, "temp_store", "memory")?;
    Ok(Reader { connection, unguarded: (!beside.is_guarded()).then_some(picture) })
}

/// The path as a URI, for a path need not be text and may hold what means something in a URI.
fn address(path: &Path, beside: Beside) -> std::io::Result<String> {
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
    address.push_str(beside.parameters());
    Ok(address)
}
