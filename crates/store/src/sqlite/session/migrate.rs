//! Bringing the schema of a database up to date.
//!
//! All missing migrations run in one transaction, so a database has the schema of one version or of another, never
//! something in between.
//!
//! A worker that runs meanwhile does not know the new schema, so it must stop. A migration under which the statements that
//! record a running attempt stay correct lets it finish its attempts first, by naming its own version:
//!
//! ```sql
//! create table if not exists finishable_versions (version integer primary key) strict;
//! insert into finishable_versions (version) values (5);
//! ```
//!
//! Otherwise the worker ends its commands, and a worker of the new program runs them again.

use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::gate::Gate;
use super::open::OpenDatabase;
use super::statement::Statements;
use crate::rows::jobs::causes::recount::assign_all;
use crate::upkeep::added_migrations::added_migrations;
use crate::{OUTDATED, Result, StoreError};
use sys::failpoint;
use sys::fs::owner_only;

/// The statements that lead from each version to the next. Append-only once a version has been released.
const MIGRATIONS: [&str; 4] = [
    include_str!("../../../migrations/sqlite/0001_schema.sql"),
    include_str!("../../../migrations/sqlite/0002_hosts.sql"),
    include_str!("../../../migrations/sqlite/0003_minutes.sql"),
    include_str!("../../../migrations/sqlite/0004_causes.sql"),
];

/// The version in which dead jobs got their causes: those that a store has when it is migrated get theirs then.
const CAUSES_VERSION: usize = 4;

/// The schema version that this program reads and writes.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// [`SCHEMA_VERSION`], or what a test has made of it.
#[expect(clippy::cast_possible_wrap, reason = "a handful of migrations")]
pub(crate) fn newest_version() -> i64 {
    SCHEMA_VERSION + added_migrations().len() as i64
}

/// Marks a SQLite file as a queue: `Queu`.
const APPLICATION_ID: i64 = 0x5175_6575;
/// Marked the queues of development versions, whose schemas had numbers that mean something else now.
const DEVELOPMENT_APPLICATION_ID: i64 = 0x5175_6563;

/// Safe with concurrent processes: one migrates, the others find it done.
pub(crate) fn bring_up_to_date(opened: &OpenDatabase, path: &Path) -> Result<()> {
    let (connection, gate) = (&opened.connection, &opened.gate);
    if !is_current(connection, path)? {
        let _guard = gate.enter(opened.lock_timeout.get())?;
        if !is_current(connection, path)? {
            migrate(connection)?;
            failpoint::hit("migrate.before_sync");
        }
    }
    make_durable(gate, path).map_err(StoreError::unavailable)
}

/// Makes the directory entries durable before any commit is acknowledged. The process that created the files may have
/// died before it synced them, so every process does this until the gate records that it was done.
fn make_durable(gate: &Gate, path: &Path) -> io::Result<()> {
    if gate.is_initialized()? {
        return Ok(());
    }
    owner_only::sync_entry(path)?;
    owner_only::sync_found(owner_only::folder_of(path))?;
    gate.mark_initialized()
}

fn migrate(connection: &Connection) -> Result<()> {
    if version(connection)? == 0 {
        // These properties of the file must be set before its first table. A commit of one job changes a handful of
        // pages, each written whole: half the default page size syncs sooner, and costs bulk inserts little.
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

fn apply(connection: &Connection) -> Result<()> {
    let from = usize::try_from(version(connection)?).unwrap_or(0);
    let migrations = MIGRATIONS.into_iter().chain(added_migrations().iter().map(String::as_str));
    for (version, migration) in migrations.enumerate().skip(from) {
        connection.execute_batch(migration)?;
        if version + 1 == CAUSES_VERSION {
            assign_all(&Statements::of(connection))?;
        }
    }
    if from > 0 {
        // A worker of an earlier version can write nothing any more, not even that.
        connection.execute("update workers set health = ?1 where state <> 'stopped'", [OUTDATED])?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", newest_version())?;
    Ok(())
}

/// Whether the schema is current. A file that is not a queue, or has a newer schema, is refused.
fn is_current(connection: &Connection, path: &Path) -> Result<bool> {
    // The common case, without reading tables. Both values are written by one commit and never unset.
    let newest = newest_version();
    if version(connection)? == newest && application(connection)? == APPLICATION_ID {
        return Ok(true);
    }
    let version = schema(connection, path)?;
    if version > newest {
        return Err(StoreError::TooNew { found: version, known: newest });
    }
    Ok(version == newest)
}

/// Checked in every write transaction: a newer program may have migrated the schema since this process opened it, and a
/// write by this program could then be incomplete.
pub(crate) fn refuse_newer(connection: &Connection) -> Result<()> {
    let found = connection.prepare_cached("pragma user_version")?.query_row([], |row| row.get(0))?;
    let known = newest_version();
    if found > known { Err(StoreError::TooNew { found, known }) } else { Ok(()) }
}

/// As `refuse_newer`, for a worker that only finishes what it runs.
pub(crate) fn refuse_unfinishable(connection: &Connection) -> Result<()> {
    match refuse_newer(connection) {
        Err(StoreError::TooNew { found, known }) if !lets_finish(connection, found, known)? => {
            Err(StoreError::TooNew { found, known })
        }
        Ok(()) | Err(StoreError::TooNew { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether each migration since the known version has recorded that workers of the version before it may finish. The first
/// such migration creates the table.
fn lets_finish(connection: &Connection, found: i64, known: i64) -> Result<bool> {
    let has_table: i64 = pragma(
        connection,
        "select count(*) from sqlite_schema where type = 'table' and name = 'finishable_versions'",
    )?;
    if has_table == 0 {
        return Ok(false);
    }
    let allowing: i64 = connection.query_row(
        "select count(*) from finishable_versions where version > ?1 and version <= ?2",
        [known, found],
        |row| row.get(0),
    )?;
    Ok(allowing == found - known)
}

/// The schema version, 0 for an empty database. A file that is not a queue is refused.
pub(crate) fn schema(connection: &Connection, path: &Path) -> Result<i64> {
    let identity = FileIdentity::read(connection)?;
    // An empty database may become a queue.
    let is_blank = identity.application == 0 && identity.version == 0 && identity.tables == 0;
    if identity.application != APPLICATION_ID && !is_blank {
        let problem = if identity.application == DEVELOPMENT_APPLICATION_ID {
            "was made by a development version of queuectl; export it with that version, then import it with this one"
        } else {
            "is a SQLite database, but not a queuectl queue"
        };
        return Err(StoreError::NotAStore { path: path.to_owned(), problem });
    }
    Ok(identity.version)
}

/// The marks that identify a database as a queue.
struct FileIdentity {
    application: i64,
    version: i64,
    tables: i64,
}

impl FileIdentity {
    /// Reads all in one snapshot: between two, another process may have turned the database into a queue.
    fn read(connection: &Connection) -> Result<Self> {
        let view = connection.unchecked_transaction()?;
        Ok(Self {
            application: application(&view)?,
            version: version(&view)?,
            tables: pragma(&view, "select count(*) from sqlite_schema")?,
        })
    }
}

fn application(connection: &Connection) -> Result<i64> {
    pragma(connection, "pragma application_id")
}

fn version(connection: &Connection) -> Result<i64> {
    pragma(connection, "pragma user_version")
}

fn pragma(connection: &Connection, sql: &str) -> Result<i64> {
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}
