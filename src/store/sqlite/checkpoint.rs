//! When the write-ahead log is folded into the database.
//!
//! Never inside the gate: nobody waits for it. A checkpoint that fails, or that others are in the way of, is no loss:
//! the log stays and the next one tries again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::gate::PATIENCE;
use super::open::Opened;

/// While processes come and go, a log of this many pages is folded in after a commit. The next commit begins it anew.
const PAGES_AFTER_COMMIT: i32 = 1_000;
/// A log of this many pages is cut off when a process ends. What is left behind, the next process to open the store
/// reads whole if nobody else has it open: fewer pages mean more flushes, more pages mean more reading.
const PAGES_AT_CLOSE: i32 = 40;

pub(super) fn after_commit(opened: &Opened) {
    if is_longer_than(opened, PAGES_AFTER_COMMIT) {
        let _ = opened.connection.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()));
    }
}

pub(super) fn at_close(opened: &Opened) {
    if is_longer_than(opened, PAGES_AT_CLOSE) {
        // That a log was folded in is known only to those who have it open; after the last of them it must be cut off,
        // or it would be read, and grow, for ever. Whoever is at work does not have to wait for that.
        let _ = opened.connection.busy_timeout(Duration::ZERO);
        let _ = opened.connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
        let _ = opened.connection.busy_timeout(PATIENCE);
    }
}

/// Whether the last commit of this connection left so long a log, and nothing was done about it.
fn is_longer_than(opened: &Opened, pages: i32) -> bool {
    let long = opened.wal_pages.load(Ordering::Relaxed) >= pages;
    if long {
        opened.wal_pages.store(0, Ordering::Relaxed);
    }
    long
}
