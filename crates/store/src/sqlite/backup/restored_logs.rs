//! Putting the log files of a backup in the place of the queue's own.
//!
//! They cannot be part of the transaction that replaces the queue. Therefore they are staged before it in a folder
//! whose name contains the stamp of the restore, and the new queue records the same stamp. If the restore is killed in
//! between, the next process that needs log files finds the folder, and the stamp tells whether it belongs to this
//! queue.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::sqlite::session::open::companion;
use crate::{Result, StoreError};
use sys::failpoint;
use sys::fs::owner_only;

/// Separates the name of the log folder from the stamp.
const STAGED_INFIX: &str = ".restored-";

/// Stages the restored log files, for the restore with this stamp.
pub(super) fn stage(new_logs: &Path, logs: &Path, stamp: &str) -> io::Result<()> {
    let staged = companion(logs, &format!("{STAGED_INFIX}{stamp}"));
    std::fs::rename(new_logs, &staged)?;
    owner_only::sync_entry(&staged)
}

/// Whether a restore was killed before its log files were in place.
pub(in crate::sqlite) fn any_staged(logs: &Path) -> bool {
    !all_staged(logs).is_empty()
}

/// Moves staged log files into place if they belong to this queue, and deletes them otherwise. Must be called inside
/// the gate.
pub(in crate::sqlite) fn put_in_place(queue: &Connection, logs: &Path) -> Result<()> {
    for (staged, stamp) in all_staged(logs) {
        if belongs_to(queue, &stamp)? {
            replace(logs, &staged).map_err(StoreError::unavailable)?;
        } else {
            // Its restore was killed before the commit.
            std::fs::remove_dir_all(&staged).map_err(StoreError::unavailable)?;
        }
    }
    Ok(())
}

/// The staged folders with their stamps.
fn all_staged(logs: &Path) -> Vec<(PathBuf, String)> {
    let Some((home, name)) = logs.parent().zip(logs.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{name}{STAGED_INFIX}");
    let entries = home.read_dir().into_iter().flatten().flatten();
    let stamped = entries.filter_map(|entry| {
        let stamp = entry.file_name().to_str()?.strip_prefix(&prefix)?.to_owned();
        Some((entry.path(), stamp))
    });
    stamped.collect()
}

/// Whether this queue was committed by the restore with this stamp.
fn belongs_to(queue: &Connection, stamp: &str) -> Result<bool> {
    // Scans the table by primary key, which happens only after a kill.
    let mut select =
        queue.prepare("select 1 from events where id > 0 and event = 'restore' and detail = ?1 limit 1")?;
    Ok(select.exists([stamp])?)
}

/// The present logs belong to the old queue, in which a number may belong to another job.
fn replace(logs: &Path, staged: &Path) -> io::Result<()> {
    let old = companion(logs, ".replaced");
    let _ = std::fs::remove_dir_all(&old);
    match std::fs::rename(logs, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    failpoint::hit("restore.logs_moved");
    std::fs::rename(staged, logs)?;
    owner_only::sync_entry(logs)?;
    failpoint::hit("restore.logs_replaced");
    // The kept queue contains these logs. A folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&old);
    Ok(())
}
