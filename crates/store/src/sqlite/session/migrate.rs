//! Bringing the schema of a database up to date.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::gate::{Gate, PATIENCE};
use crate::StoreError;
use sys::failpoint;
use sys::fs::owner_only;

/// The statements that lead from each version to the next. Append-only.
const MIGRATIONS: [&str; 4] = [
    include_str!("../../../../../migrations/sqlite/0001_foundation.sql"),
    include_str!("../../../../../migrations/sqlite/0002_orders.sql"),
    include_str!("../../../../../migrations/sqlite/0003_order_and_time.sql"),
    include_str!("../../../../../migrations/sqlite/0004_identity.sql"),
];

/// The version that this program reads and writes.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// Marks a SQLite file as a queue of ours: `Quec`.
const APPLICATION_ID: i64 = 0x5175_6563;

/// Whatever the version, many processes may do this at once: one migrates, the others find it done.
pub(crate) fn bring_up_to_date(connection: &Connection, gate: &Gate, path: &Path) -> Result<(), StoreError> {
    if !is_current(connection, path)? {
        let _pass = gate.enter(PATIENCE)?;
        if !is_current(connection, path)? {
            migrate(connection)?;
            failpoint::hit("migrate.before_sync");
        }
    }
    keep(gate, path).map_err(|error| StoreError::Unavailable { source: error.into() })
}

/// Sees to it that the files are there to stay, before anybody acknowledges anything. Whoever made them, or the folder,
/// may be about to do this, or have died before it: so everybody does until the gate remembers that it was done.
fn keep(gate: &Gate, path: &Path) -> io::Result<()> {
    if gate.remembers_a_queue()? {
        return Ok(());
    }
    owner_only::sync_entry(path)?;
    owner_only::sync_found(owner_only::folder_of(path))?;
    gate.remember_the_queue()
}

fn migrate(connection: &Connection) -> Result<(), StoreError> {
    if version(connection)? == 0 {
        // These are properties of the file and must come before its first table. A commit of one job changes a handful
        // of pages, each written whole: half the usual size flushes sooner, and costs bulk inserts little.
        connection.execute_batch(
            "pragma page_size = 2048; pragma auto_vacuum = incremental; pragma journal_mode = wal;",
        )?;
    }
    failpoint::hit("migrate.before_begin");
    connection.execute_batch("begin immediate")?;
    let applied = apply(connection);
    failpoint::hit("migrate.before_commit");
    let ended = connection.execute_batch(if applied.is_ok() { "commit" } else { "rollback" });
    failpoint::hit("migrate.after_commit");
    applied?;
    Ok(ended?)
}

fn apply(connection: &Connection) -> Result<(), StoreError> {
    let from = usize::try_from(version(connection)?).unwrap_or(0);
    for migration in &MIGRATIONS[from..] {
        connection.execute_batch(migration)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    Ok(())
}

/// Whether nothing is to be done. A file that is none of ours, or newer than this program, is refused.
fn is_current(connection: &Connection, path: &Path) -> Result<bool, StoreError> {
    // The common case, without a look at the tables. Both are written by one commit and never unset.
    if version(connection)? == SCHEMA_VERSION && application(connection)? == APPLICATION_ID {
        return Ok(true);
    }
    let version = schema(connection, path)?;
    if version > SCHEMA_VERSION {
        return Err(StoreError::TooNew { found: version, known: SCHEMA_VERSION });
    }
    Ok(version == SCHEMA_VERSION)
}

/// To be asked in every transaction that writes: a newer program may have changed the schema since this one opened it, and
/// what this one writes may then be less than what belongs there.
pub(crate) fn refuse_newer(connection: &Connection) -> Result<(), StoreError> {
    let found = connection.prepare_cached("pragma user_version")?.query_row([], |row| row.get(0))?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::TooNew { found, known: SCHEMA_VERSION });
    }
    Ok(())
}

/// The version of the schema, 0 where nothing was made yet. A file that is none of ours is refused.
pub(crate) fn schema(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let marks = Marks::read(connection)?;
    // A file in which nobody has made anything may become ours.
    let is_blank = marks.application == 0 && marks.version == 0 && marks.tables == 0;
    if marks.application != APPLICATION_ID && !is_blank {
        return Err(StoreError::NotAStore {
            path: path.to_owned(),
            problem: "is a SQLite database, but not a queue of queuectl",
        });
    }
    Ok(marks.version)
}

/// What tells whose database it is.
struct Marks {
    application: i64,
    version: i64,
    tables: i64,
}

impl Marks {
    /// Reads them in one view: between two views another process may have made the database a queue.
    fn read(connection: &Connection) -> Result<Self, StoreError> {
        let view = connection.unchecked_transaction()?;
        Ok(Self {
            application: application(&view)?,
            version: version(&view)?,
            tables: pragma(&view, "select count(*) from sqlite_schema")?,
        })
    }
}

fn application(connection: &Connection) -> Result<i64, StoreError> {
    pragma(connection, "pragma application_id")
}

fn version(connection: &Connection) -> Result<i64, StoreError> {
    pragma(connection, "pragma user_version")
}

fn pragma(connection: &Connection, sql: &str) -> Result<i64, StoreError> {
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}
