//! When the write-ahead log is checkpointed.
//!
//! SQLite restarts the log at the first commit after a complete checkpoint. The log is then overwritten in place, which
//! syncs twice as fast as extending the file; so it is truncated only if it has grown long.
//!
//! Only processes that have the store open know from shared memory that the log is checkpointed. A process that opens
//! the store alone reads the whole log to rebuild the index, and does not know that the log can be restarted. With
//! processes that come and go one at a time, the log would grow, and be read, without bound; so such a process
//! checkpoints *before* its first write.
//!
//! Checkpoints never run inside the gate, so no writer waits for them. A failed or blocked checkpoint does no harm: the
//! log stays, and the next checkpoint tries again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;

use super::open::OpenDatabase;
use super::statement::Statements;
use crate::rows::tables::workers;

/// A log of this many pages is checkpointed in any case.
const CHECKPOINT_PAGES: i32 = 2_000;
/// A log of this many pages is checkpointed by a process that has the store to itself: a lower limit means more syncs,
/// a higher one more reading by the processes that follow.
const CHECKPOINT_PAGES_ALONE: i32 = 32;

/// A log of this many pages is checkpointed by the process that wrote it before it exits; otherwise the next process
/// would have to read it.
const CHECKPOINT_PAGES_AT_CLOSE: i32 = 200;

/// Called before the first write of a process. Afterwards the process knows how long the log is.
pub(crate) fn before_first_write(opened: &OpenDatabase) {
    if pages(opened) > 0 {
        return;
    }
    let found = opened.connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get::<_, i32>(1));
    if found.is_ok_and(|pages| pages >= CHECKPOINT_PAGES_ALONE) && !has_worker(opened) {
        checkpoint(&opened.connection);
    }
}

pub(crate) fn after_commit(opened: &OpenDatabase) {
    if pages(opened) >= CHECKPOINT_PAGES {
        checkpoint(&opened.connection);
    }
}

pub(crate) fn at_close(opened: &OpenDatabase) {
    if pages(opened) >= CHECKPOINT_PAGES_AT_CLOSE && !has_worker(opened) {
        // Do not wait for a busy process.
        let _ = opened.connection.busy_timeout(Duration::ZERO);
        let _ = opened.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
        let _ = opened.connection.busy_timeout(opened.lock_timeout.get());
        opened.wal_pages.store(0, Ordering::Relaxed);
    }
}

fn checkpoint(connection: &Connection) {
    let _ = connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()));
}

/// The length of the log after the last commit of this connection; 0 before the first.
fn pages(opened: &OpenDatabase) -> i32 {
    opened.wal_pages.load(Ordering::Relaxed)
}

/// A worker keeps the store open.
fn has_worker(opened: &OpenDatabase) -> bool {
    workers::any_live(&Statements::of(&opened.connection)).unwrap_or(true)
}
