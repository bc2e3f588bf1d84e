//! Writing a backup.
//!
//! The pages are copied from one view, which is held from the first to the last: so nobody who writes meanwhile makes the
//! copy begin anew, and nobody waits for it. All that others notice is that the write-ahead log cannot begin anew before
//! the copy is done.
//!
//! `vacuum into` was tried too: it took half as long again, and at its worst a writer waited ten times as long.

use std::io;
use std::path::Path;

use rusqlite::backup::{Backup as Copying, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::log_files;
use crate::sqlite::session::migrate;
use crate::{Backup, Progress, StoreError};
use sys::failpoint;

/// How many pages are copied before progress is told.
const PAGES_PER_STEP: i32 = 4_096;
/// A file system layer that locks nothing: nobody else knows of the file yet, and where it lies locks may not work.
const WITHOUT_LOCKS: &str = "unix-none";

/// Copies what the connection sees, which must not have begun a write.
pub(in crate::sqlite) fn copy(
    from: &Connection,
    backup: &Backup<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), StoreError> {
    let view = from.unchecked_transaction()?;
    // The first read: from here on the view stays as it is.
    migrate::refuse_newer(&view)?;
    let mut to = open(backup.to)?;
    let logs = log_files::bytes(backup.logs);
    let mut told = Progress { done: 0, total: logs };
    copy_pages(&view, &mut to, |done, total| {
        told = Progress { done, total: total + logs };
        progress(told);
    })?;
    drop(view);
    failpoint::hit("backup.copied");
    log_files::put(&to, backup.logs, |bytes| {
        told.done += bytes;
        progress(told);
    })?;
    close(to, backup.to)
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(path, flags, WITHOUT_LOCKS)
        .map_err(|error| StoreError::CannotOpen { path: path.to_owned(), source: error.into() })?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A backup that was cut off is thrown away, so nothing of it need be undone, and it is synced once, at the end.
    connection.execute_batch(
        "pragma locking_mode = exclusive; pragma journal_mode = off; pragma synchronous = off;",
    )?;
    Ok(connection)
}

fn copy_pages(
    from: &Connection,
    to: &mut Connection,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), StoreError> {
    let page_bytes: u64 = from.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let copying = Copying::new(from, to)?;
    loop {
        let step = copying.step(PAGES_PER_STEP)?;
        let pages = copying.progress();
        let bytes = |pages: i32| u64::try_from(pages).unwrap_or(0) * page_bytes;
        progress(bytes(pages.pagecount - pages.remaining), bytes(pages.pagecount));
        if finished(step)? {
            return Ok(());
        }
    }
}

/// Whether that was the last step.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the library's, and grows")]
pub(super) fn finished(step: StepResult) -> Result<bool, StoreError> {
    match step {
        StepResult::Done => Ok(true),
        StepResult::More => Ok(false),
        // The others are the library's words for somebody who is in the way.
        _ => Err(StoreError::Busy { waited: std::time::Duration::ZERO, holder: None }),
    }
}

/// Makes it one file, whatever becomes of the machine.
fn close(to: Connection, path: &Path) -> Result<(), StoreError> {
    // The copied pages say that there is a write-ahead log.
    let mode: String = to.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0))?;
    if mode != "delete" {
        return Err(StoreError::Unavailable { source: format!("the backup stayed in mode {mode}").into() });
    }
    to.close().map_err(|(_, error)| StoreError::from(error))?;
    sync(path).map_err(|error| StoreError::Unavailable { source: error.into() })
}

fn sync(path: &Path) -> io::Result<()> {
    std::fs::File::open(path)?.sync_all()
}
