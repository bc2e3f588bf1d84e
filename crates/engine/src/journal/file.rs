//! The file that all processes of a home append to, and its rotation.
//!
//! A line is lost to nobody: each writer appends with one call, which the kernel does not mix with others; the file is
//! only ever renamed, never cut; and before each write a look at the path shows whether the file there is still the
//! one that is open. Whoever is a moment late writes to the end of the renamed file.
//!
//! Who rotates holds the lock of the file, has seen under it that the path still leads to this file, and renames it to
//! `worker.log.DAY`, or `worker.log.DAY.1` and so on. A lock that is taken means that somebody else is at it: the
//! others go on writing meanwhile.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use domain::values::day::Day;
use domain::values::timestamp::Timestamp;
use sys::fs::owner_only;

/// A file that has grown to this is rotated before its day is over.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
const KEPT_DAYS: u32 = 30;
const KEPT_FILES: usize = 64;
/// As long as the time at the beginning of a line: `2026-01-31T09:30:00.000Z`.
const TIME_BYTES: usize = 24;

#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    pub(super) max_bytes: u64,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Device and number: two files are the same if both are.
    identity: (u64, u64),
    /// The day of its first line, once that is known.
    day: Option<Day>,
}

impl LogFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, max_bytes: MAX_FILE_BYTES, open: None }
    }

    /// Appends as much as can be written, and says how much that was.
    pub(super) fn append(&mut self, bytes: &[u8], now: Timestamp) -> io::Result<usize> {
        let mut file = self.current(Day::of(now))?;
        let mut written = 0;
        while written < bytes.len() {
            match file.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What was written before is not to be written again.
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// The file to write to today.
    fn current(&mut self, today: Day) -> io::Result<&File> {
        let mut open = self.opened()?;
        let size = open.file.metadata()?.len();
        if self.is_due(&mut open, size, today) {
            // A file that cannot be rotated is still good for writing.
            let _ = self.rotate(&open, today);
            open = Open::at(&self.path)?;
        }
        Ok(&self.open.insert(open).file)
    }

    /// What is open already, if the path still leads there.
    fn opened(&mut self) -> io::Result<Open> {
        match self.open.take() {
            Some(open) if open.is_at(&self.path) => Ok(open),
            Some(_) | None => Open::at(&self.path),
        }
    }

    fn is_due(&self, open: &mut Open, size: u64, today: Day) -> bool {
        if size == 0 {
            return false;
        }
        // A file that does not begin with a time is none of ours; from now on it counts as today's.
        let day = *open.day.get_or_insert_with(|| first_day(&open.file).unwrap_or(today));
        day < today || size >= self.max_bytes
    }

    fn rotate(&self, open: &Open, today: Day) -> io::Result<()> {
        if open.file.try_lock().is_err() || !open.is_at(&self.path) {
            return Ok(());
        }
        let earlier = self.rotated()?;
        let day = open.day.unwrap_or(today);
        // Counted on from the last one, not the first free number: those that were deleted must not come again.
        let last = earlier.iter().filter(|file| file.day == day).map(|file| file.number).max();
        let name = Rotated { day, number: last.map_or(0, |last| last.saturating_add(1)) };
        fs::rename(&self.path, name.path(&self.path))?;
        self.prune(earlier, today);
        Ok(())
    }

    /// Deletes what is too old, and the oldest where there are too many. What was rotated just now stays in any case:
    /// somebody may be about to write to it.
    fn prune(&self, mut earlier: Vec<Rotated>, today: Day) {
        earlier.sort_unstable();
        let too_many = (earlier.len() + 1).saturating_sub(KEPT_FILES);
        let oldest = today.days_earlier(KEPT_DAYS);
        for (at, file) in earlier.iter().enumerate() {
            if at < too_many || file.day < oldest {
                // One that stays is tried again with the next rotation.
                let _ = fs::remove_file(file.path(&self.path));
            }
        }
    }

    /// The rotated files that are there.
    fn rotated(&self) -> io::Result<Vec<Rotated>> {
        let stem = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = fs::read_dir(owner_only::folder_of(&self.path))?;
        let read = |entry: io::Result<fs::DirEntry>| {
            Rotated::from_suffix(entry.ok()?.file_name().to_str()?.strip_prefix(stem)?)
        };
        Ok(folder.filter_map(read).collect())
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let file = owner_only::open_to_append(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self { file, identity, day: None })
    }

    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|there| identity(&there) == self.identity)
    }
}

/// A rotated file; those of one day are numbered. In the order of their age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rotated {
    day: Day,
    number: u32,
}

impl Rotated {
    /// Reads what follows the name of the file: `.2026-01-31` or `.2026-01-31.2`.
    fn from_suffix(suffix: &str) -> Option<Self> {
        let (day, number) = match suffix.strip_prefix('.')?.split_once('.') {
            Some((day, number)) => (day, number.parse().ok()?),
            None => (&suffix[1..], 0),
        };
        let read = Self { day: day.parse().ok()?, number };
        // Only a name that we would give is ours to delete.
        (read.suffix() == suffix).then_some(read)
    }

    fn suffix(self) -> String {
        if self.number == 0 { format!(".{}", self.day) } else { format!(".{}.{}", self.day, self.number) }
    }

    fn path(self, log: &Path) -> PathBuf {
        let mut path = log.as_os_str().to_owned();
        path.push(self.suffix());
        path.into()
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

fn first_day(file: &File) -> Option<Day> {
    let mut time = [0; TIME_BYTES];
    file.read_exact_at(&mut time, 0).ok()?;
    let time: Timestamp = str::from_utf8(&time).ok()?.parse().ok()?;
    Some(Day::of(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_that_find_a_file_due_one_rotates_it() {
        let home = tempfile::tempdir().expect("tempdir");
        let log = LogFile::new(home.path().join("worker.log"));
        let today: Day = "2026-01-31".parse().expect("a day");
        let open = |text| {
            let open = Open::at(&log.path).expect("open");
            (&open.file).write_all(text).expect("write");
            open
        };
        let (first, second) = (open(b"old\n"), open(b""));
        first.file.try_lock().expect("lock");
        log.rotate(&second, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 0, "somebody else is at it");
        log.rotate(&first, today).expect("rotate");
        drop((first, open(b"new\n")));
        log.rotate(&second, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 1, "the new file is not due");
        assert_eq!(fs::read(&log.path).expect("read"), b"new\n");
    }
}
