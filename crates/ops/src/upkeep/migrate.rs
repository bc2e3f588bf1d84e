//! Bringing the schema of a queue up to date.
//!
//! A command that opens a database file migrates it. A schema on a server is used by many machines: there a command of a
//! newer version must not end the work of a whole fleet, so migrating takes a command of its own.

use crate::OpError;
use crate::home::location::{Location, StoreAddress};
use crate::home::open::open;
use store::Worker;
#[cfg(feature = "postgres")]
use {
    crate::home::open::open_for_reading,
    crate::worker::live::live_workers,
    store::postgres::report::{SchemaReport, report},
    store::postgres::{Address, PostgresStore, SCHEMA_VERSION},
};

/// Whether live workers keep a migration from beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fleet {
    MustBeStopped,
    /// Workers that do not know the new schema end their commands and exit.
    MayRun,
}

#[derive(Clone, Debug)]
pub enum Migration {
    /// The version was the newest already.
    Unchanged { version: i64 },
    /// `None` before: there was no queue.
    Done { before: Option<i64>, version: i64 },
    /// These workers run an older queuectl; nothing was changed.
    WorkersLive(Vec<Worker>),
}

pub fn migrate(location: &Location, fleet: Fleet) -> Result<Migration, OpError> {
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
        StoreAddress::Postgres(address) => migrate_server(address, fleet),
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => {
            open(location)?;
            Ok(Migration::WorkersLive(Vec::new()))
        }
    }
}

#[cfg(feature = "postgres")]
fn migrate_server(address: &Address, fleet: Fleet) -> Result<Migration, OpError> {
    let before = match report(address)?.schema {
        SchemaReport::Queue(queue) => Some(queue.version),
        SchemaReport::Missing | SchemaReport::Empty | SchemaReport::Hidden => None,
    };
    if before.is_some_and(|before| before >= SCHEMA_VERSION) {
        // A schema that is too new is refused here.
        open_for_reading(address)?;
        return Ok(Migration::Unchanged { version: SCHEMA_VERSION });
    }
    if before.is_some() && fleet == Fleet::MustBeStopped {
        let workers = live_workers(open_for_reading(address)?.as_ref())?;
        if !workers.is_empty() {
            return Ok(Migration::WorkersLive(workers));
        }
    }
    let version = PostgresStore::migrate(address)?;
    Ok(Migration::Done { before, version })
}
