//! Tests of the SQLite store only: the file, its schema, and its bell.

mod bell;
#[cfg(debug_assertions)] // Release builds have no fail-points.
mod crash;
mod examine;
mod file;
mod fire;
#[cfg(debug_assertions)] // Released builds take no migrations from tests.
mod migration;
#[cfg(debug_assertions)]
mod migration_killed;
#[cfg(debug_assertions)]
mod migration_seams;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::Value;
use store::StoreError;
use store::sqlite::SqliteStore;
use tempfile::TempDir;

use super::fixture::{Fixture, TestClock};

/// A folder for a database.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder }
    }

    /// A folder with a new, closed queue.
    fn with_queue() -> Self {
        let home = Self::new();
        drop(home.open().expect("a new store"));
        home
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    fn open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(&self.database(), Arc::new(TestClock::default()))
    }

    fn fixture(&self) -> Fixture {
        Fixture::sqlite_in(self.folder.path())
    }

    /// Opens the database by a plain connection. This is safe only while no store of this process has it open.
    fn connect(&self) -> Connection {
        connect(&self.database())
    }
}

fn connect(path: &Path) -> Connection {
    Connection::open(path).expect("a database")
}

/// The single value that a statement returns.
fn value(connection: &Connection, sql: &str) -> String {
    match connection.query_row(sql, [], |row| row.get(0)).expect(sql) {
        Value::Text(text) => text,
        Value::Integer(number) => number.to_string(),
        other @ (Value::Null | Value::Real(_) | Value::Blob(_)) => panic!("{sql} returns {other:?}"),
    }
}
