//! What the files of a store look like from outside: whether somebody changed them while they were read without locks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open::beside;
use crate::StoreError;

/// How often one looks at files that are being changed. Whoever writes leaves what the next look is guarded by, so the
/// second one should do.
const MAX_LOOKS: u32 = 5;

/// Which files there are, which they are, how long, and when they were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    database: PathBuf,
    files: [Option<Outline>; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outline {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Picture {
    pub(crate) fn of(database: &Path) -> Self {
        let outline = |suffix| {
            let meta = beside(database, suffix).metadata().ok()?;
            Some(Outline {
                inode: meta.ino(),
                length: meta.len(),
                changed: (meta.mtime(), meta.mtime_nsec()),
            })
        };
        Self { database: database.to_owned(), files: ["", "-wal", "-shm"].map(outline) }
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Whether the files look otherwise now.
    pub(crate) fn is_outdated(&self) -> bool {
        *self != Self::of(&self.database)
    }
}

/// Looks until there is an answer; a look that was disturbed has none.
pub(crate) fn look_until_undisturbed<T>(
    mut look: impl FnMut() -> Option<Result<T, StoreError>>,
) -> Result<T, StoreError> {
    (0..MAX_LOOKS).find_map(|_| look()).unwrap_or(Err(StoreError::Changing))
}

/// How often one asks for an index that is just being written. It takes microseconds.
const MAX_TRIES: u32 = 20;

/// Reads past a moment in which the head of the shared index is being written: SQLite then takes it for one that has to be
/// made anew, which a reader may not do, and says that the database is read-only.
pub(crate) fn past_the_moment<T>(mut read: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut found = read();
    for _ in 1..MAX_TRIES {
        if !matches!(found, Err(StoreError::ReadOnly)) {
            break;
        }
        std::thread::yield_now();
        found = read();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_or_replaced_looks_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("queue.db");
        let write = |suffix, text| std::fs::write(beside(&database, suffix), text).expect("a file");
        write("", "one");
        let picture = Picture::of(&database);
        assert!(!picture.is_outdated());
        write("-wal", "");
        assert!(picture.is_outdated(), "there is a log now");
        let picture = Picture::of(&database);
        write("", "three");
        assert!(picture.is_outdated(), "it is longer");
        let picture = Picture::of(&database);
        write("-new", "three");
        std::fs::rename(beside(&database, "-new"), &database).expect("it is put in its place");
        assert!(picture.is_outdated(), "it is another");
    }

    #[test]
    fn what_is_read_only_for_a_moment_is_read_and_what_stays_so_is_told() {
        let mut tries = 0;
        let read = past_the_moment(|| {
            tries += 1;
            if tries < 3 { Err(StoreError::ReadOnly) } else { Ok("read") }
        });
        assert_eq!(read.ok(), Some("read"));
        let never = past_the_moment(|| Err::<(), _>(StoreError::ReadOnly));
        assert!(matches!(never, Err(StoreError::ReadOnly)), "{never:?}");
    }

    #[test]
    fn one_looks_again_but_not_for_ever() {
        let mut looks = 0;
        let answer = look_until_undisturbed(|| {
            looks += 1;
            (looks == 3).then_some(Ok("seen"))
        });
        assert_eq!(answer.ok(), Some("seen"));
        let never = look_until_undisturbed(|| None::<Result<(), _>>);
        assert!(matches!(never, Err(StoreError::Changing)), "{never:?}");
    }
}
