//! Bringing the schema of a queue up to date.
//!
//! A command that opens a database file migrates it. A schema on a server is used by many machines: there a command of a
//! newer version must not end the work of a whole fleet, so migrating takes a command of its own.

use crate::OpError;
use crate::home::location::{Location, StoreAddress};
use crate::home::open::open;
use store::Store;
#[cfg(feature = "postgres")]
use {
    crate::home::open::open_for_reading,
    store::postgres::report::{QueueReport, SchemaReport, report},
    store::postgres::{Address, PostgresStore, newest_gate, newest_version},
};

#[derive(Clone, Debug)]
pub enum Migration {
    /// The version was the newest already.
    Unchanged { version: i64 },
    /// `None` before: there was no queue.
    Done { before: Option<i64>, version: i64 },
}

/// The store, if its live workers could do nothing after the migration: then it only serves to stop them. The workers of a
/// schema that has to be migrated all run an older queuectl, because a newer one refuses to write there.
pub fn store_with_older_workers(location: &Location) -> Result<Option<Box<dyn Store>>, OpError> {
    match &location.store {
        StoreAddress::Sqlite(_) => Ok(None),
        #[cfg(feature = "postgres")]
        StoreAddress::Postgres(address) => match found(address)? {
            Some(queue) if queue.version < newest_version() && queue.gate < newest_gate() => {
                Ok(Some(Box::new(PostgresStore::open_to_stop_workers(address)?)))
            }
            Some(_) | None => Ok(None),
        },
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => Ok(None),
    }
}

pub fn migrate(location: &Location) -> Result<Migration, OpError> {
    match &location.store {
        StoreAddress::Sqlite(_) => {
            let existed = location.has_queue();
            open(location)?;
            let version = store::sqlite::SCHEMA_VERSION;
            Ok(if existed {
                Migration::Unchanged { version }
            } else {
                Migration::Done { before: None, version }
            })
        }
        #[cfg(feature = "postgres")]
        StoreAddress::Postgres(address) => migrate_server(address),
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => {
            open(location)?;
            Ok(Migration::Unchanged { version: store::sqlite::SCHEMA_VERSION })
        }
    }
}

#[cfg(feature = "postgres")]
fn migrate_server(address: &Address) -> Result<Migration, OpError> {
    let before = found(address)?.map(|queue| queue.version);
    if before.is_some_and(|before| before >= newest_version()) {
        // A schema that is too new is refused here.
        open_for_reading(address)?;
        return Ok(Migration::Unchanged { version: newest_version() });
    }
    let version = PostgresStore::migrate(address)?;
    Ok(Migration::Done { before, version })
}

#[cfg(feature = "postgres")]
fn found(address: &Address) -> Result<Option<QueueReport>, OpError> {
    Ok(match report(address)?.schema {
        SchemaReport::Queue(queue) => Some(queue),
        SchemaReport::Missing | SchemaReport::Empty | SchemaReport::Hidden => None,
    })
}
