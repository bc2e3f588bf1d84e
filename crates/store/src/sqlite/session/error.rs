//! Mapping SQLite's errors to store errors.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use super::gate::GATE_TIMEOUT;
use super::open::companion;
use crate::StoreError;
use sys::last_error;
use sys::process::rlimit::Limit;

const UNREADABLE: &str = "a file of the store could not be read: disk I/O error";

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(code) = error.sqlite_error_code() else {
            return Self::Malformed { what: "row", detail: error.to_string() };
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the enum is SQLite's, and grows")]
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                Self::Busy { waited: GATE_TIMEOUT, holder: None }
            }
            ErrorCode::DiskFull => Self::Full,
            ErrorCode::ReadOnly => Self::ReadOnly,
            ErrorCode::SystemIoFailure => {
                out_of_space(&error).unwrap_or(Self::Unavailable { source: error.into() })
            }
            // SQLite reports a page that could not be read as corrupt.
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

/// A file could not be extended. For the write-ahead log SQLite reports a full disk itself.
fn out_of_space(error: &Error) -> Option<StoreError> {
    match error.sqlite_error()?.extended_code {
        ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE if Limit::FileSize.soft().is_some() => {
            Some(file_limit())
        }
        // The shared memory is a file too.
        ffi::SQLITE_IOERR_SHMSIZE => Some(StoreError::Full),
        _ => None,
    }
}

fn file_limit() -> StoreError {
    StoreError::Obstacle {
        problem: "a file of the store has reached the file size limit".to_owned(),
        advice: "raise the limit (`ulimit -f`), then try again",
    }
}

/// Files grow by less than this at a time: the log by a page, its index by 32 KiB.
const MAX_GROWTH: u64 = 64 << 10;

/// Maps a failed commit. After an IO error it is unknown whether the commit took effect, unless a file could not be
/// extended: then the commit record at its end is missing. A file size limit alone proves nothing; one of the files
/// must have reached it.
pub(crate) fn commit_error(error: Error, database: Option<&str>) -> StoreError {
    let code = error.sqlite_error().map(|error| error.extended_code);
    let is_at_limit = || {
        let limit = Limit::FileSize.soft();
        limit.zip(database).is_some_and(|(limit, database)| would_exceed(limit, longest(Path::new(database))))
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if code == Some(ffi::SQLITE_IOERR_WRITE) && is_at_limit() => {
            file_limit()
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
    let files = [database.to_owned(), companion(database, "-wal"), companion(database, "-shm")];
    files.iter().filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0)
}

fn would_exceed(limit: u64, length: u64) -> bool {
    length.saturating_add(MAX_GROWTH) > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_at_its_limit_when_the_next_extension_would_exceed_it() {
        for (limit, length, near) in [
            (0, 0, true),
            (1 << 30, 0, false),
            (1 << 30, 1 << 30, true),
            (MAX_GROWTH, 0, false),
            (MAX_GROWTH, 1, true),
        ] {
            assert_eq!(would_exceed(limit, length), near, "{length} of {limit}");
        }
        assert!(would_exceed(u64::MAX - 1, u64::MAX - 1));
    }
}
