//! Records every statement that a store of this thread executes, and its cost.
//!
//! SQLite calls [`listen`] for each connection that is opened in this process. Connections of a thread that is not
//! recording are left alone, so concurrent tests are not affected.

#![expect(unsafe_code, reason = "only SQLite's C interface reports executed statements and their cost")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Once;

use rusqlite::auto_extension::register_auto_extension;
use rusqlite::ffi;

/// One execution of a statement.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// On one line.
    pub(super) sql: String,
    /// Steps of SQLite's virtual machine: a few for each row that is read.
    pub(super) steps: u32,
}

thread_local! {
    static RUNS: RefCell<Option<Vec<Run>>> = const { RefCell::new(None) };
}

/// Records the statements of connections that are opened from now on.
pub(super) fn start() {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        // SAFETY: the routine opens and closes no database and leaves the list of routines alone.
        unsafe { register_auto_extension(listen) }.expect("SQLite registers the routine");
    });
    RUNS.set(Some(Vec::new()));
}

/// Returns the statements since the last call, and continues to record.
pub(super) fn take() -> Vec<Run> {
    RUNS.with_borrow_mut(|runs| std::mem::take(runs.as_mut().expect("`start` was called")))
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
    unsafe { ffi::sqlite3_trace_v2(connection, ffi::SQLITE_TRACE_PROFILE, Some(record), ptr::null_mut()) }
}

/// SQLite calls this when an execution has ended.
unsafe extern "C" fn record(_: c_uint, _: *mut c_void, statement: *mut c_void, _: *mut c_void) -> c_int {
    let statement = statement.cast::<ffi::sqlite3_stmt>();
    // SAFETY: SQLite passes a live statement; the call reads its counter and resets it to zero.
    let steps = unsafe { ffi::sqlite3_stmt_status(statement, ffi::SQLITE_STMTSTATUS_VM_STEP, 1) };
    if RUNS.with_borrow(Option::is_none) {
        return ffi::SQLITE_OK;
    }
    // SAFETY: the same live statement, which owns its text.
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
