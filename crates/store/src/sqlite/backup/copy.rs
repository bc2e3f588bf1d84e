//! Writing a backup.
//!
//! The pages are copied in one read transaction, so a concurrent write never restarts the copy, and no writer waits for
//! it. The only effect on others is that the write-ahead log cannot be reset before the copy is done.
//!
//! `vacuum into` was measured too: it took half as long again, and in the worst case a writer waited ten times as long.

use std::path::Path;

use rusqlite::backup::{Backup as PageCopy, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::log_files;
use super::{Backup, Progress};
use crate::sqlite::session::migrate;
use crate::{Result, StoreError};
use sys::failpoint;

/// How many pages are copied between progress reports.
const PAGES_PER_COPY_STEP: i32 = 4_096;
/// A VFS without locks: no other process knows the file yet, and locks may not work where it lies.
const UNLOCKED_VFS: &str = "unix-none";

/// Copies the database as the connection sees it. The connection must not have begun a write.
pub(in crate::sqlite) fn copy(
    from: &Connection,
    backup: &Backup<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let view = from.unchecked_transaction()?;
    // This first read fixes the snapshot.
    migrate::refuse_newer(&view)?;
    let mut to = open(backup.to)?;
    let logs = log_files::bytes(backup.logs);
    let mut reported = Progress { done: 0, total: logs };
    copy_pages(&view, &mut to, |done, total| {
        reported = Progress { done, total: total + logs };
        progress(reported);
    })?;
    drop(view);
    failpoint::hit("backup.copied");
    log_files::store(&to, backup.logs, |bytes| {
        reported.done += bytes;
        progress(reported);
    })?;
    close(to, backup.to)
}

fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags_and_vfs(path, flags, UNLOCKED_VFS)
        .map_err(StoreError::cannot_open(path))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // An interrupted backup is thrown away, so it needs no journal, and it is synced once, at the end.
    connection.execute_batch(
        "pragma locking_mode = exclusive; pragma journal_mode = off; pragma synchronous = off;",
    )?;
    Ok(connection)
}

fn copy_pages(from: &Connection, to: &mut Connection, mut progress: impl FnMut(u64, u64)) -> Result<()> {
    let page_bytes: u64 = from.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let page_copy = PageCopy::new(from, to)?;
    loop {
        let step = page_copy.step(PAGES_PER_COPY_STEP)?;
        let pages = page_copy.progress();
        let bytes = |pages: i32| u64::try_from(pages).unwrap_or(0) * page_bytes;
        progress(bytes(pages.pagecount - pages.remaining), bytes(pages.pagecount));
        if is_done(step)? {
            return Ok(());
        }
    }
}

/// Whether that was the last step.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the library's, and grows")]
pub(super) fn is_done(step: StepResult) -> Result<bool> {
    match step {
        StepResult::Done => Ok(true),
        StepResult::More => Ok(false),
        // The remaining variants mean that another connection holds a lock.
        _ => Err(StoreError::Busy { waited: std::time::Duration::ZERO, holder: None }),
    }
}

/// Turns it into a single file, and makes it durable.
fn close(to: Connection, path: &Path) -> Result<()> {
    // The copied header says WAL mode.
    let mode: String = to.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0))?;
    if mode != "delete" {
        return Err(StoreError::Unavailable {
            source: format!("the backup stayed in journal mode {mode}").into(),
        });
    }
    to.close().map_err(|(_, error)| StoreError::from(error))?;
    std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(StoreError::unavailable)
}
