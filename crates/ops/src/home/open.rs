//! Opening the store at an address. No other use-case knows which databases there are, except those about a database
//! file itself: backup, restore, and its examination by `doctor`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::location::{Location, StoreAddress, ensure_home};
#[cfg(debug_assertions)]
use super::simulated_network::wrap as networked;
use crate::OpError;
use store::postgres::Address;
#[cfg(feature = "postgres")]
use store::postgres::PostgresStore;
use store::sqlite::{GATE_TIMEOUT, SCHEMA_VERSION, SqliteStore, check_files};
use store::{Store, StoreError};
use sys::clock::SystemClock;

/// How long a glance waits for a lock. Only a process that has locked out all readers holds one that long.
const GLANCE_TIMEOUT: Duration = Duration::from_millis(100);

/// Opens the store; creates the home and the database on first use.
pub fn open(location: &Location) -> Result<Box<dyn Store>, OpError> {
    match &location.store {
        StoreAddress::Sqlite(_) => {
            ensure_home(&location.home)?;
            Ok(reopen(&location.store)?)
        }
        // A server that cannot be used leaves no trace here.
        StoreAddress::Postgres(_) => {
            let store = reopen(&location.store)?;
            ensure_home(&location.home)?;
            Ok(store)
        }
    }
}

/// Opens the store. Creates nothing in a home that the user named: where that has no queue, the name may be a typing error.
/// On a read-only filesystem, the store can be read, and refuses writes.
pub fn open_existing(location: &Location) -> Result<Box<dyn Store>, OpError> {
    open_known(location, None)
}

/// As [`open_existing`], for a caller that waits no longer than this for a lock; see [`Store::wait_at_most`].
pub fn open_existing_within(location: &Location, lock_timeout: Duration) -> Result<Box<dyn Store>, OpError> {
    open_known(location, Some(lock_timeout))
}

fn open_known(location: &Location, lock_timeout: Option<Duration>) -> Result<Box<dyn Store>, OpError> {
    match &location.store {
        StoreAddress::Sqlite(database) => {
            location.check_exists()?;
            ensure_home(&location.home)?;
            let lock_timeout = lock_timeout.unwrap_or(GATE_TIMEOUT);
            Ok(networked(Box::new(open_readable_within(database, lock_timeout)?)))
        }
        StoreAddress::Postgres(address) => {
            let store = open_existing_postgres(address, lock_timeout)?;
            ensure_home(&location.home)?;
            Ok(store)
        }
    }
}

/// Opens a database for reading only where its filesystem permits nothing else.
pub(crate) fn open_readable(database: &Path) -> Result<SqliteStore, StoreError> {
    open_readable_within(database, GATE_TIMEOUT)
}

fn open_readable_within(database: &Path, lock_timeout: Duration) -> Result<SqliteStore, StoreError> {
    let clock = || Arc::new(SystemClock);
    match SqliteStore::open_within(database, clock(), lock_timeout) {
        Err(StoreError::ReadOnly) if database.exists() => {
            check_files(database)?;
            SqliteStore::open_read_only_within(database, clock(), lock_timeout)
        }
        opened => opened,
    }
}

/// Opens a store whose home existed before. Creates nothing: a deleted home must stay deleted.
pub fn reopen(store: &StoreAddress) -> Result<Box<dyn Store>, StoreError> {
    match store {
        StoreAddress::Sqlite(path) => {
            Ok(networked(Box::new(SqliteStore::open(path, Arc::new(SystemClock))?)))
        }
        StoreAddress::Postgres(address) => Ok(networked(open_postgres(address)?)),
    }
}

/// The store itself: only a debug build simulates a network.
#[cfg(not(debug_assertions))]
fn networked(store: Box<dyn Store>) -> Box<dyn Store> {
    store
}

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreKind {
    pub name: &'static str,
    /// The version of the schema that this program uses. Every migration has one for each database.
    pub schema: i64,
}

pub fn kind(store: &StoreAddress) -> StoreKind {
    let name = match store {
        StoreAddress::Sqlite(_) => "sqlite",
        StoreAddress::Postgres(_) => "postgres",
    };
    StoreKind { name, schema: SCHEMA_VERSION }
}

/// Opens the store for a glance: creates nothing, changes nothing, waits for nothing, and does not open files of other
/// users.
pub fn glance(location: &Location) -> Result<Box<dyn Store>, StoreError> {
    match &location.store {
        StoreAddress::Sqlite(database) => {
            check_files(database)?;
            let clock = Arc::new(SystemClock);
            Ok(Box::new(SqliteStore::open_read_only_within(database, clock, GLANCE_TIMEOUT)?))
        }
        StoreAddress::Postgres(address) => open_for_reading(address),
    }
}

/// Opens a store on a server without changing it; also on a standby.
#[cfg(feature = "postgres")]
pub(crate) fn open_for_reading(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(PostgresStore::open_read_only(address, None)?))
}

#[cfg(feature = "postgres")]
fn open_postgres(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(PostgresStore::open(address, None)?))
}

/// A queue that was never created is most likely a mistyped address.
#[cfg(feature = "postgres")]
fn open_existing_postgres(
    address: &Address,
    lock_timeout: Option<Duration>,
) -> Result<Box<dyn Store>, OpError> {
    let opened = match lock_timeout {
        Some(lock_timeout) => PostgresStore::open_existing_within(address, lock_timeout),
        None => PostgresStore::open_existing(address, None),
    };
    match opened {
        Ok(store) => Ok(Box::new(store)),
        Err(StoreError::NotAStore { .. }) => Err(OpError::NoQueueOnServer { address: address.to_string() }),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(feature = "postgres"))]
fn open_existing_postgres(address: &Address, _: Option<Duration>) -> Result<Box<dyn Store>, OpError> {
    Ok(open_postgres(address)?)
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &Address) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError::Obstacle {
        problem: "this queuectl was built without PostgreSQL stores".to_owned(),
        advice: "use a queuectl that was built with the feature `postgres`",
    })
}

#[cfg(not(feature = "postgres"))]
pub(crate) fn open_for_reading(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    open_postgres(address)
}
