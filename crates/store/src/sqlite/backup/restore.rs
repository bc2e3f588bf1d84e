//! Replacing the queue with a backup.
//!
//! The pages are written over those of the queue in one transaction. So the file holds the old queue or the new one,
//! even after a crash, and processes that have the queue open continue with the new one. If there is no queue, or one
//! that cannot be opened, the file itself is replaced.
//!
//! All of this happens inside the gate: no other process writes, so no acknowledged change falls between the two
//! queues, and no worker can register. The log files follow after the commit; see `restored_logs` for a restore that is
//! killed at that point.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::Backup as PageCopy;
use rusqlite::{Connection, OpenFlags};

use super::copy::{copy, is_done};
use super::incoming::IncomingBackup;
use super::restored_logs;
use super::{Backup, RestoreError};
use crate::sqlite::session::gate::{GATE_TIMEOUT, Gate};
use crate::sqlite::session::migrate;
use crate::sqlite::session::open::companion;
use crate::{Result, StoreError};
use sys::failpoint;
use sys::fs::owner_only;

/// Returns where the old queue is kept, if it held any jobs.
pub(super) fn replace(
    incoming: &IncomingBackup,
    count_workers: &dyn Fn() -> usize,
) -> Result<Option<PathBuf>, RestoreError> {
    let gate = Gate::open(&incoming.database)?;
    let _pass = gate.enter(GATE_TIMEOUT)?;
    let count = count_workers();
    if count > 0 {
        return Err(RestoreError::Workers { count });
    }
    let aside = companion(&incoming.database, &format!(".before-restore-{}", incoming.stamp));
    let queue = connect(&incoming.database);
    if let Some(queue) = &queue {
        // From an earlier restore: the queue that is kept needs its own logs.
        restored_logs::put_in_place(queue, &incoming.logs)?;
    }
    restored_logs::stage(&incoming.new_logs, &incoming.logs, &incoming.stamp)
        .map_err(StoreError::unavailable)?;
    let kept = match queue {
        Some(queue) => overwrite(incoming, queue, &aside)?,
        None => replace_file(incoming, &aside)?,
    };
    failpoint::hit("restore.replaced");
    let queue = Connection::open(&incoming.database).map_err(StoreError::from)?;
    restored_logs::put_in_place(&queue, &incoming.logs)?;
    Ok(kept)
}

/// The queue, if it can be opened at all.
fn connect(database: &Path) -> Option<Connection> {
    if database.metadata().map_or(0, |meta| meta.len()) == 0 {
        return None;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(database, flags).ok()?;
    connection.busy_timeout(GATE_TIMEOUT).ok()?;
    let is_ours = migrate::schema(&connection, database).is_ok_and(|version| version > 0);
    is_ours.then_some(connection)
}

fn overwrite(incoming: &IncomingBackup, mut queue: Connection, aside: &Path) -> Result<Option<PathBuf>> {
    let kept = keep_old(incoming, &queue, aside)?;
    failpoint::hit("restore.kept");
    let new = Connection::open(&incoming.copy)?;
    failpoint::hit("restore.before_commit");
    is_done(PageCopy::new(&new, &mut queue)?.step(-1)?)?;
    failpoint::hit("restore.after_commit");
    // The write-ahead log holds all of it now; a failed checkpoint costs only disk space.
    let _ = queue.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
    Ok(kept)
}

/// Keeps the old queue with its logs as a backup, unless it holds no jobs. A queue too damaged to be backed up is kept
/// as a plain file copy.
fn keep_old(incoming: &IncomingBackup, queue: &Connection, aside: &Path) -> Result<Option<PathBuf>> {
    let is_empty = queue.query_row("select not exists (select 1 from jobs)", [], |row| row.get(0));
    if is_empty.unwrap_or(false) {
        return Ok(None);
    }
    let partial = companion(aside, ".partial");
    owner_only::replace_file(&partial).map_err(StoreError::unavailable)?;
    let written = copy(queue, &Backup { to: &partial, logs: &incoming.logs }, &mut |_| {});
    if written.is_err() {
        let raw = copy_raw(&incoming.database, &partial);
        if raw.is_err() {
            let _ = std::fs::remove_file(&partial);
            return written.map(|()| None);
        }
    }
    std::fs::rename(&partial, aside)
        .and_then(|()| owner_only::sync_entry(aside))
        .map_err(StoreError::unavailable)?;
    Ok(Some(aside.to_owned()))
}

/// Copies a database that SQLite cannot read. Closing the file drops SQLite's locks on it, but the gate protects it
/// here. The write-ahead log is copied too, because data may be recoverable from the pair.
fn copy_raw(database: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(database, to)?;
    let log = companion(database, "-wal");
    if log.exists() {
        std::fs::copy(log, companion(to, "-wal"))?;
    }
    Ok(())
}

/// For a missing or unreadable queue.
fn replace_file(incoming: &IncomingBackup, aside: &Path) -> Result<Option<PathBuf>> {
    let new = Connection::open(&incoming.copy)?;
    new.execute_batch("pragma journal_mode = wal;")?;
    new.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    new.close().map_err(|(_, error)| StoreError::from(error))?;
    let kept = set_aside(&incoming.database, aside).map_err(StoreError::unavailable)?;
    failpoint::hit("restore.before_commit");
    std::fs::rename(&incoming.copy, &incoming.database)
        .and_then(|()| owner_only::sync_entry(&incoming.database))
        .map_err(StoreError::unavailable)?;
    failpoint::hit("restore.after_commit");
    Ok(kept)
}

/// A write-ahead log belongs to the old file and would be replayed into the new one, so it is moved first.
fn set_aside(database: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(companion(database, suffix), companion(aside, suffix)) {
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
