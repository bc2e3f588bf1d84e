//! Putting a backup in the place of the queue.
//!
//! The pages are written over those of the queue in one transaction: so it is the old queue or the new one, whatever dies
//! meanwhile, and whoever has the queue open goes on with the new one. Where there is no queue, or one that cannot even
//! be opened, the file itself takes its place.
//!
//! All of it happens inside the gate: nobody writes, so nothing that was acknowledged falls between the two, and nobody
//! can register as a worker. Log files follow the commit; see `restored_logs` for what becomes of them if it is killed then.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::Backup as Copying;
use rusqlite::{Connection, OpenFlags};

use super::copy::{copy, finished};
use super::incoming::Incoming;
use super::restored_logs;
use crate::sqlite::session::gate::{Gate, PATIENCE};
use crate::sqlite::session::migrate;
use crate::sqlite::session::open::beside;
use crate::{Backup, RestoreError, StoreError};
use sys::failpoint;
use sys::fs::owner_only;

/// Gives where the old queue is kept, if there was one that held anything.
pub(super) fn put(
    incoming: &Incoming,
    count_workers: &dyn Fn() -> usize,
) -> Result<Option<PathBuf>, RestoreError> {
    let gate = Gate::open(&incoming.database)?;
    let _pass = gate.enter(PATIENCE)?;
    let count = count_workers();
    if count > 0 {
        return Err(RestoreError::Workers { count });
    }
    let aside = beside(&incoming.database, &format!(".before-restore-{}", incoming.stamp));
    let queue = connect(&incoming.database);
    if let Some(queue) = &queue {
        // Of a restore before this one: what is kept is to have its own.
        restored_logs::put(queue, &incoming.logs)?;
    }
    restored_logs::make_ready(&incoming.new_logs, &incoming.logs, &incoming.stamp).map_err(unavailable)?;
    let kept = match queue {
        Some(queue) => put_into(incoming, queue, &aside)?,
        None => take_its_place(incoming, &aside)?,
    };
    failpoint::hit("restore.replaced");
    let queue = Connection::open(&incoming.database).map_err(StoreError::from)?;
    restored_logs::put(&queue, &incoming.logs)?;
    Ok(kept)
}

/// The queue, if it can be opened at all.
fn connect(database: &Path) -> Option<Connection> {
    if database.metadata().map_or(0, |meta| meta.len()) == 0 {
        return None;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).ok()?;
    connection.busy_timeout(PATIENCE).ok()?;
    let is_ours = migrate::schema(&connection, database).is_ok_and(|version| version > 0);
    is_ours.then_some(connection)
}

fn put_into(incoming: &Incoming, mut queue: Connection, aside: &Path) -> Result<Option<PathBuf>, StoreError> {
    let kept = keep(incoming, &queue, aside)?;
    failpoint::hit("restore.kept");
    let new = Connection::open(&incoming.copy)?;
    failpoint::hit("restore.before_commit");
    finished(Copying::new(&new, &mut queue)?.step(-1)?)?;
    failpoint::hit("restore.after_commit");
    // The log holds all of it now; a failure costs nothing but room.
    let _ = queue.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    Ok(kept)
}

/// Keeps the old queue with its logs as a backup, unless nothing is in it. One that is too damaged to be copied is kept
/// byte by byte.
fn keep(incoming: &Incoming, queue: &Connection, aside: &Path) -> Result<Option<PathBuf>, StoreError> {
    let is_empty = queue.query_row("select not exists (select 1 from jobs)", [], |row| row.get(0));
    if is_empty.unwrap_or(false) {
        return Ok(None);
    }
    let partial = beside(aside, ".partial");
    owner_only::replace_file(&partial).map_err(unavailable)?;
    let written = copy(queue, &Backup { to: &partial, logs: &incoming.logs }, &mut |_| {});
    if written.is_err() {
        let raw = keep_bytes(&incoming.database, &partial);
        if raw.is_err() {
            let _ = std::fs::remove_file(&partial);
            return written.map(|()| None);
        }
    }
    std::fs::rename(&partial, aside).and_then(|()| owner_only::sync_entry(aside)).map_err(unavailable)?;
    Ok(Some(aside.to_owned()))
}

/// A database that SQLite cannot copy. Opening it by other means drops SQLite's locks on it, which nobody needs inside the
/// gate; the log goes with it, for whoever wants to save something from the two.
fn keep_bytes(database: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(database, to)?;
    let log = beside(database, "-wal");
    if log.exists() {
        std::fs::copy(log, beside(to, "-wal"))?;
    }
    Ok(())
}

/// There is no queue, or nothing that could be read as one.
fn take_its_place(incoming: &Incoming, aside: &Path) -> Result<Option<PathBuf>, StoreError> {
    let new = Connection::open(&incoming.copy)?;
    new.execute_batch("pragma journal_mode = wal;")?;
    new.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    new.close().map_err(|(_, error)| StoreError::from(error))?;
    let kept = set_aside(&incoming.database, aside).map_err(unavailable)?;
    failpoint::hit("restore.before_commit");
    std::fs::rename(&incoming.copy, &incoming.database)
        .and_then(|()| owner_only::sync_entry(&incoming.database))
        .map_err(unavailable)?;
    failpoint::hit("restore.after_commit");
    Ok(kept)
}

/// What a log holds belongs to the old file and would be read into the new one, so it goes first.
fn set_aside(database: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(beside(database, suffix), beside(aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    match database.metadata() {
        Ok(meta) if meta.len() > 0 => {
            std::fs::hard_link(database, aside)?;
            owner_only::sync_entry(aside)?;
            Ok(Some(aside.to_owned()))
        }
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn unavailable(error: io::Error) -> StoreError {
    StoreError::Unavailable { source: error.into() }
}
