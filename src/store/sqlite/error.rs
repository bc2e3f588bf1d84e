//! SQLite's errors in the words of a store.

use rusqlite::{Error, ErrorCode, ffi};

use super::gate::PATIENCE;
use crate::store::StoreError;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::Malformed { what: "row", detail: error.to_string() };
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is SQLite's, and grows")]
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { waited: PATIENCE },
            ErrorCode::DiskFull => Self::Full,
            // The shared memory is a file too.
            ErrorCode::SystemIoFailure if error.sqlite_error().is_some_and(is_for_want_of_room) => Self::Full,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch => Self::Corrupt { source: error.into() },
            _ => Self::Unavailable { source: error.into() },
        }
    }
}

fn is_for_want_of_room(error: &ffi::Error) -> bool {
    error.extended_code == ffi::SQLITE_IOERR_SHMSIZE
}

/// A commit that failed: with an IO error nobody knows whether it took place.
pub(super) fn commit_error(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => StoreError::OutcomeUnknown { source: error.into() },
        _ => error.into(),
    }
}
