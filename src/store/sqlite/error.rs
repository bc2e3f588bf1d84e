//! SQLite's errors in the words of a store.

use rusqlite::{Error, ErrorCode, ffi};

use super::gate::PATIENCE;
use crate::store::StoreError;
use crate::sys::limit::Limit;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::Malformed { what: "row", detail: error.to_string() };
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is SQLite's, and grows")]
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { waited: PATIENCE },
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::SystemIoFailure => {
                for_want_of_room(&error).unwrap_or(Self::Unavailable { source: error.into() })
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
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE if Limit::FileSize.now().is_some() => {
            Some(StoreError::FileLimit)
        }
        // The shared memory is a file too.
        ffi::SQLITE_IOERR_SHMSIZE => Some(StoreError::Full),
        _ => None,
    }
}

/// A commit that failed: with an IO error nobody knows whether it took place. Unless it was the file that could not be
/// made longer, because then what makes a commit one, the end of what it writes, is missing.
pub(super) fn commit_error(error: Error) -> StoreError {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure)
            if extended != Some(ffi::SQLITE_IOERR_WRITE) || Limit::FileSize.now().is_none() =>
        {
            StoreError::OutcomeUnknown { source: error.into() }
        }
        _ => error.into(),
    }
}
