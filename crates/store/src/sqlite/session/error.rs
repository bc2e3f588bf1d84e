//! SQLite's errors in the words of a store.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use super::gate::PATIENCE;
use super::open::beside;
use crate::StoreError;
use sys::last_error;
use sys::process::limit::Limit;

const UNREADABLE: &str = "a file of the store cannot be read: disk I/O error";

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::Malformed { what: "row", detail: error.to_string() };
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is SQLite's, and grows")]
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Self::Busy { waited: PATIENCE, holder: None }
            }
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::SystemIoFailure => {
                for_want_of_room(&error).unwrap_or(Self::Unavailable { source: error.into() })
            }
            // SQLite calls a page corrupt that the disk did not give.
            ErrorCode::DatabaseCorrupt if last_error::is_device_error() => {
                Self::Unavailable { source: UNREADABLE.into() }
            }
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch => Self::Corrupt { source: error.into() },
            _ => Self::Unavailable { source: error.into() },
        }
    }
}

/// A file could not be made longer, but for the log, of which SQLite says so itself.
fn for_want_of_room(error: &Error) -> Option<StoreError> {
    match error.sqlite_error()?.extended_code {
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE if Limit::FileSize.soft().is_some() => {
            Some(StoreError::FileLimit)
        }
        // The shared memory is a file too.
        ffi::SQLITE_IOERR_SHMSIZE => Some(StoreError::Full),
        _ => None,
    }
}

/// Files grow by less than this at a time: the log by a page, its index by 32 KiB.
const STEP: u64 = 64 << 10;

/// A commit that failed: with an IO error nobody knows whether it took place. Unless it was a file that could not be made
/// longer, because then what makes a commit one, the end of what it writes, is missing. That there is a limit does not
/// say that it was in the way: a file must stand at it.
pub(crate) fn commit_error(error: Error, database: Option<&str>) -> StoreError {
    let code = error.sqlite_error().map(|error| error.extended_code);
    let stands_at_limit = || {
        let limit = Limit::FileSize.soft();
        limit.zip(database).is_some_and(|(limit, database)| is_near(limit, longest(Path::new(database))))
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if code == Some(ffi::SQLITE_IOERR_WRITE) && stands_at_limit() => {
            StoreError::FileLimit
        }
        Some(ErrorCode::SystemIoFailure) => StoreError::OutcomeUnknown { source: error.into() },
        Some(ErrorCode::DatabaseCorrupt) if last_error::is_device_error() => {
            StoreError::OutcomeUnknown { source: UNREADABLE.into() }
        }
        _ => error.into(),
    }
}

/// The length of the longest file of the store.
fn longest(database: &Path) -> u64 {
    let files = [database.to_owned(), beside(database, "-wal"), beside(database, "-shm")];
    files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0)
}

fn is_near(limit: u64, length: u64) -> bool {
    length.saturating_add(STEP) > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_at_a_limit_that_its_next_step_would_pass() {
        for (limit, length, near) in
            [(0, 0, true), (1 << 30, 0, false), (1 << 30, 1 << 30, true), (STEP, 0, false), (STEP, 1, true)]
        {
            assert_eq!(is_near(limit, length), near, "{length} of {limit}");
        }
        assert!(is_near(u64::MAX - 1, u64::MAX - 1));
    }
}
