//! The state of a store's files, to detect changes while they are read without locks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open::companion;
use crate::{Result, StoreError};

/// How often to read files that keep changing. A writer leaves the files that make the next read take locks, so the
/// second try should succeed.
const MAX_CHANGING_READS: u32 = 5;

/// Which of the files exist; their inode, length and modification time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    database: PathBuf,
    files: [Option<(u64, u64, i64, i64)>; 3],
}

impl FileState {
    pub(crate) fn of(database: &Path) -> Self {
        let stamp = |suffix| {
            let meta = companion(database, suffix).metadata().ok()?;
            Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
        };
        Self { database: database.to_owned(), files: ["", "-wal", "-shm"].map(stamp) }
    }

    /// Whether the files have changed since.
    pub(crate) fn has_changed(&self) -> bool {
        *self != Self::of(&self.database)
    }
}

/// Reads until the files did not change during a read; `None` means that they did.
pub(crate) fn retry_while_changing<T>(mut read: impl FnMut() -> Result<Option<Result<T>>>) -> Result<T> {
    for _ in 0..MAX_CHANGING_READS {
        if let Some(found) = read()? {
            return found;
        }
    }
    Err(StoreError::Changing)
}

/// How often to retry while another process writes the WAL-index header, which takes microseconds.
const MAX_READONLY_READS: u32 = 20;

/// Retries `SQLITE_READONLY` while another process rewrites the WAL-index header. SQLite then takes the index for one
/// that needs recovery, which a reader may not do, and reports a read-only database.
pub(crate) fn retry_while_readonly<T>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..MAX_READONLY_READS {
        match read() {
            Err(StoreError::ReadOnly) => std::thread::yield_now(),
            found => return found,
        }
    }
    read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_or_replaced_file_changes_the_file_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("queue.db");
        let write = |suffix, text| std::fs::write(companion(&database, suffix), text).expect("a file");
        write("", "one");
        let state = FileState::of(&database);
        assert!(!state.has_changed());
        write("-wal", "");
        assert!(state.has_changed(), "there is a log now");
        let state = FileState::of(&database);
        write("", "three");
        assert!(state.has_changed(), "it is longer");
        let state = FileState::of(&database);
        write("-new", "three");
        std::fs::rename(companion(&database, "-new"), &database).expect("it is put in its place");
        assert!(state.has_changed(), "it is another");
    }

    #[test]
    fn a_transient_readonly_error_is_retried_and_a_lasting_one_is_returned() {
        let mut tries = 0;
        let read = retry_while_readonly(|| {
            tries += 1;
            if tries < 3 { Err(StoreError::ReadOnly) } else { Ok("read") }
        });
        assert_eq!(read.ok(), Some("read"));
        let never = retry_while_readonly(|| Err::<(), _>(StoreError::ReadOnly));
        assert!(matches!(never, Err(StoreError::ReadOnly)), "{never:?}");
    }

    #[test]
    fn reads_of_changing_files_are_retried_a_limited_number_of_times() {
        let mut reads = 0;
        let answer = retry_while_changing(|| {
            reads += 1;
            Ok((reads == 3).then_some(Ok("seen")))
        });
        assert_eq!(answer.ok(), Some("seen"));
        let never = retry_while_changing(|| Ok(None::<Result<(), _>>));
        assert!(matches!(never, Err(StoreError::Changing)), "{never:?}");
    }
}
