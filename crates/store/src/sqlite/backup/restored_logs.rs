//! The log files of a backup on their way into the place of the queue's own.
//!
//! They cannot be part of the transaction that replaces the queue. So before it they lie ready in a folder with the stamp of
//! the restore in its name, and the queue that it commits holds the same stamp. If the restore is killed in between, the
//! next one who needs log files finds the folder, and the queue says whether they belong to it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::StoreError;
use crate::sqlite::session::open::beside;
use sys::failpoint;
use sys::fs::owner_only;

/// Between the name of the folder of logs and the stamp.
const READY: &str = ".restored-";

/// Stages the restored log files, for the restore with this stamp.
pub(super) fn make_ready(new_logs: &Path, logs: &Path, stamp: &str) -> io::Result<()> {
    let ready = beside(logs, &format!("{READY}{stamp}"));
    std::fs::rename(new_logs, &ready)?;
    owner_only::sync_entry(&ready)
}

/// Whether a restore was killed before its log files were in their place.
pub(in crate::sqlite) fn are_any_ready(logs: &Path) -> bool {
    !all_ready(logs).is_empty()
}

/// Puts log files that lie ready in their place, if they belong to this queue. To be called inside the gate.
pub(in crate::sqlite) fn put(queue: &Connection, logs: &Path) -> Result<(), StoreError> {
    let unavailable = |error: io::Error| StoreError::Unavailable { source: error.into() };
    for (ready, stamp) in all_ready(logs) {
        if is_of(queue, &stamp)? {
            replace(logs, &ready).map_err(unavailable)?;
        } else {
            // Its restore was killed before it was committed.
            std::fs::remove_dir_all(&ready).map_err(unavailable)?;
        }
    }
    Ok(())
}

/// The folders that lie ready, with their stamps.
fn all_ready(logs: &Path) -> Vec<(PathBuf, String)> {
    let Some((home, name)) = logs.parent().zip(logs.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let begins = format!("{name}{READY}");
    let entries = home.read_dir().into_iter().flatten().flatten();
    let stamped = entries.filter_map(|entry| {
        let stamp = entry.file_name().to_str()?.strip_prefix(&begins)?.to_owned();
        Some((entry.path(), stamp))
    });
    stamped.collect()
}

/// Whether this queue was committed by the restore with this stamp.
fn is_of(queue: &Connection, stamp: &str) -> Result<bool, StoreError> {
    // By the primary key: all of them, which only happens after a kill.
    let mut select =
        queue.prepare("select 1 from events where id > 0 and event = 'restore' and detail = ?1 limit 1")?;
    Ok(select.exists([stamp])?)
}

/// The logs that are there belong to the old queue, in which a job's number may have been another's.
fn replace(logs: &Path, ready: &Path) -> io::Result<()> {
    let old = beside(logs, ".replaced");
    let _ = std::fs::remove_dir_all(&old);
    match std::fs::rename(logs, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    failpoint::hit("restore.logs_moved");
    std::fs::rename(ready, logs)?;
    owner_only::sync_entry(logs)?;
    failpoint::hit("restore.logs_replaced");
    // They are in what was kept. What cannot be removed is in nobody's way.
    let _ = std::fs::remove_dir_all(&old);
    Ok(())
}
