//! Opening the store at an address. No other use-case knows which databases there are, except those about a database
//! file itself: backup, restore, and its examination by `doctor`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::location::{Location, StoreAddress, ensure_home};
use crate::OpError;
use store::sqlite::{SqliteStore, check_files};
use store::{Store, StoreError};
use sys::clock::SystemClock;

/// How long a glance waits for a lock. Only a process that has locked out all readers holds one that long.
const GLANCE_TIMEOUT: Duration = Duration::from_millis(100);

/// Opens the store; creates the home and the database on first use.
pub fn open(location: &Location) -> Result<Box<dyn Store>, OpError> {
    ensure_home(&location.home)?;
    Ok(reopen(&location.store)?)
}

/// Opens the store. Creates nothing in a home that the user named: where that has no queue, the name may be a typing error.
/// On a read-only filesystem, the store can be read, and refuses writes.
pub fn open_existing(location: &Location) -> Result<Box<dyn Store>, OpError> {
    location.check_exists()?;
    ensure_home(&location.home)?;
    match &location.store {
        StoreAddress::Sqlite(database) => Ok(Box::new(open_readable(database)?)),
    }
}

/// Opens a database for reading only where its filesystem permits nothing else.
pub(crate) fn open_readable(database: &Path) -> Result<SqliteStore, StoreError> {
    let clock = || Arc::new(SystemClock);
    match SqliteStore::open(database, clock()) {
        Err(StoreError::ReadOnly) if database.exists() => {
            check_files(database)?;
            SqliteStore::open_read_only(database, clock())
        }
        opened => opened,
    }
}

/// Opens a store whose home existed before. Creates nothing: a deleted home must stay deleted.
pub fn reopen(store: &StoreAddress) -> Result<Box<dyn Store>, StoreError> {
    match store {
        StoreAddress::Sqlite(path) => {
            Ok(rehearsed(Box::new(SqliteStore::open(path, Arc::new(SystemClock))?)))
        }
    }
}

#[cfg(debug_assertions)]
use store::rehearsal::wrap as rehearsed;

/// The store itself: only a debug build rehearses.
#[cfg(not(debug_assertions))]
fn rehearsed(store: Box<dyn Store>) -> Box<dyn Store> {
    store
}

/// Opens the store for a glance: creates nothing, changes nothing, waits for nothing, and does not open files of other
/// users.
pub fn glance(location: &Location) -> Result<Box<dyn Store>, StoreError> {
    let StoreAddress::Sqlite(database) = &location.store;
    check_files(database)?;
    Ok(Box::new(SqliteStore::open_read_only_within(database, Arc::new(SystemClock), GLANCE_TIMEOUT)?))
}
