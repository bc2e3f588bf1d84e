//! Where a queue lives.

use std::path::Path;

use serde::Serialize;

use crate::OpError;
use crate::home::location::{Location, StoreAddress};
use crate::home::open::open_existing;
use store::StoreError;
#[cfg(feature = "postgres")]
use store::postgres::report::{SchemaReport, ServerReport, report};
use store::sqlite::SCHEMA_VERSION;

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreKind {
        Sqlite = "sqlite",
        Postgres = "postgres",
    }
}

/// The place of a queue, as `store info` shows it. What a kind of store does not have is null; there is never a password.
#[derive(Clone, Debug, Serialize)]
pub struct StoreInfo {
    pub kind: StoreKind,
    /// The address for `--store`.
    pub address: String,
    pub path: Option<String>,
    pub host: Option<String>,
    pub database: Option<String>,
    pub schema: Option<String>,
    pub role: Option<String>,
    /// Null if there is no queue yet, or if the role may not read its version.
    pub schema_version: Option<i64>,
    pub server_version: Option<String>,
    pub size_bytes: Option<u64>,
    /// How the session is protected: `verify-full`, `verify-ca` or `disable`.
    pub tls: Option<&'static str>,
    pub is_standby: Option<bool>,
    pub standbys: Option<i64>,
    pub synchronous_standbys: Option<i64>,
    pub synchronous_commit: Option<String>,
}

/// Asks the store. A queue that does not exist yet is not created.
pub fn store_info(location: &Location) -> Result<StoreInfo, OpError> {
    match &location.store {
        StoreAddress::Sqlite(database) => of_file(location, database),
        #[cfg(feature = "postgres")]
        StoreAddress::Postgres(address) => Ok(of_server(address.to_string(), &report(address)?, address)),
        #[cfg(not(feature = "postgres"))]
        StoreAddress::Postgres(_) => {
            open_existing(location).map(|_| nothing_known(StoreKind::Postgres, String::new()))
        }
    }
}

fn nothing_known(kind: StoreKind, address: String) -> StoreInfo {
    StoreInfo {
        kind,
        address,
        path: None,
        host: None,
        database: None,
        schema: None,
        role: None,
        schema_version: None,
        server_version: None,
        size_bytes: None,
        tls: None,
        is_standby: None,
        standbys: None,
        synchronous_standbys: None,
        synchronous_commit: None,
    }
}

fn of_file(location: &Location, database: &Path) -> Result<StoreInfo, OpError> {
    // Opening it brings its schema up to date.
    open_existing(location)?;
    let path = std::path::absolute(database).unwrap_or_else(|_| database.to_owned());
    let meta = path.metadata().map_err(StoreError::unavailable)?;
    let path = path.display().to_string();
    Ok(StoreInfo {
        path: Some(path.clone()),
        schema_version: Some(SCHEMA_VERSION),
        size_bytes: Some(meta.len()),
        ..nothing_known(StoreKind::Sqlite, path)
    })
}

#[cfg(feature = "postgres")]
fn of_server(shown: String, found: &ServerReport, address: &store::postgres::Address) -> StoreInfo {
    let queue = match &found.schema {
        SchemaReport::Queue(queue) => Some(queue),
        SchemaReport::Missing | SchemaReport::Hidden | SchemaReport::Empty => None,
    };
    StoreInfo {
        host: Some(found.server.host.to_string()),
        database: Some(address.database.clone()),
        schema: Some(address.schema.clone()),
        role: Some(found.role.clone()),
        schema_version: queue.map(|queue| queue.version),
        server_version: Some(found.server.version.clone()),
        size_bytes: queue.and_then(|queue| u64::try_from(queue.bytes).ok()),
        tls: Some(found.server.tls.name()),
        is_standby: Some(found.server.is_standby),
        standbys: Some(found.standbys.connected),
        synchronous_standbys: Some(found.standbys.synchronous),
        synchronous_commit: Some(found.synchronous_commit.clone()),
        ..nothing_known(StoreKind::Postgres, shown)
    }
}
