//! When the write-ahead log is folded into the database.
//!
//! The log begins anew with the first commit that finds all of it folded in. It is then overwritten in place, which a
//! flush finishes twice as fast as one that lengthens the file; so it is cut off only where it has grown long.
//!
//! That it was folded in is known only to those who have the store open, in shared memory. Whoever opens a store alone
//! reads the whole log to find out what is in it, and does not know that it may begin anew. Where processes come and go
//! one at a time, the log would be read, and grow, for ever; so such a process folds it in *before* its first write.
//!
//! Never inside the gate: nobody waits for it. A checkpoint that fails, or that others are in the way of, is no loss:
//! the log stays and the next one tries again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::Connection;

use super::open::Opened;
use crate::sqlite::tables::workers;

/// A log of this many pages is folded in whoever has the store open.
const LONG: i32 = 2_000;
/// A log of this many pages is folded in by a process that has the store for itself: fewer mean more flushes, more mean
/// more reading by those that follow.
const LONG_FOR_ONE: i32 = 32;

/// A log of this many pages is not left behind by one that has made it so long: others would have to read it.
const LONG_TO_LEAVE: i32 = 200;

/// Before the first write of a process. Afterwards it knows how long the log is.
pub(crate) fn before_first_write(opened: &Opened) {
    if pages(opened) > 0 {
        return;
    }
    let found = opened.connection.query_row("pragma wal_checkpoint(noop)", [], |row| row.get::<_, i32>(1));
    if found.is_ok_and(|pages| pages >= LONG_FOR_ONE) && !has_worker(opened) {
        fold_in(&opened.connection);
    }
}

pub(crate) fn after_commit(opened: &Opened) {
    if pages(opened) >= LONG {
        fold_in(&opened.connection);
    }
}

pub(crate) fn at_close(opened: &Opened) {
    if pages(opened) >= LONG_TO_LEAVE && !has_worker(opened) {
        // Whoever is at work does not have to wait for this.
        let _ = opened.connection.busy_timeout(Duration::ZERO);
        let _ = opened.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
        let _ = opened.connection.busy_timeout(opened.patience.get());
        opened.wal_pages.store(0, Ordering::Relaxed);
    }
}

fn fold_in(connection: &Connection) {
    let _ = connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()));
}

/// How long the log was after the last commit of this connection; 0 before the first.
fn pages(opened: &Opened) -> i32 {
    opened.wal_pages.load(Ordering::Relaxed)
}

/// A worker keeps the store open.
fn has_worker(opened: &Opened) -> bool {
    workers::any_live(&opened.connection).unwrap_or(true)
}
