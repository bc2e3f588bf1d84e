//! Every statement that a store of this thread runs, as SQLite sees it, with what it cost.
//!
//! SQLite calls [`listen`] for each connection that is opened in this process. Connections of a thread that is not taping
//! are left alone, so tests beside this one notice nothing.

#![expect(
    unsafe_code,
    reason = "only SQLite's own interface tells which statements were run and what they cost"
)]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Once;

use rusqlite::auto_extension::register_auto_extension;
use rusqlite::ffi;

/// One run of a statement.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// On one line.
    pub(super) sql: String,
    /// Steps of SQLite's machine: a few for each row that is looked at.
    pub(super) steps: u32,
}

thread_local! {
    static RUNS: RefCell<Option<Vec<Run>>> = const { RefCell::new(None) };
}

/// The statements that are run on connections opened from now on, until the tape is taken.
pub(super) fn start() {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        // SAFETY: the routine opens and closes no database and leaves the list of routines alone.
        unsafe { register_auto_extension(listen) }.expect("SQLite takes the routine");
    });
    RUNS.set(Some(Vec::new()));
}

/// What was run since the last time; taping goes on.
pub(super) fn take() -> Vec<Run> {
    RUNS.with_borrow_mut(|runs| std::mem::take(runs.as_mut().expect("the tape was started")))
}

pub(super) fn stop() {
    RUNS.set(None);
}

unsafe extern "C" fn listen(
    connection: *mut ffi::sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    if RUNS.with_borrow(Option::is_none) {
        return ffi::SQLITE_OK;
    }
    // SAFETY: the connection is the one that is just being opened.
    unsafe { ffi::sqlite3_trace_v2(connection, ffi::SQLITE_TRACE_PROFILE, Some(note), ptr::null_mut()) }
}

/// Called when a run has ended.
unsafe extern "C" fn note(_: c_uint, _: *mut c_void, statement: *mut c_void, _: *mut c_void) -> c_int {
    let statement = statement.cast::<ffi::sqlite3_stmt>();
    // SAFETY: SQLite hands over a statement that is alive; its counter is read and set to zero.
    let steps = unsafe { ffi::sqlite3_stmt_status(statement, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) };
    if RUNS.with_borrow(Option::is_none) {
        return ffi::SQLITE_OK;
    }
    // SAFETY: the same statement, and its text lives as long.
    let sql = unsafe { CStr::from_ptr(ffi::sqlite3_sql(statement)) }.to_string_lossy();
    let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let run = Run { sql, steps: steps.unsigned_abs() };
    RUNS.with_borrow_mut(|runs| {
        if let Some(runs) = runs {
            runs.push(run);
        }
    });
    ffi::SQLITE_OK
}
