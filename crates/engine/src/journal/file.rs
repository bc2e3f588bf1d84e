//! The file that all processes of a home append to, and its rotation.
//!
//! No line is lost: each writer appends with one system call, which the kernel does not interleave with others; the
//! file is only renamed, never truncated; and before each write the writer checks that the path still leads to its open
//! file. A writer that is slightly too late appends to the renamed file.
//!
//! The process that rotates holds the lock of the file, checks under it that the path still leads to this file, and
//! renames it to `worker.log.DAY`, or `worker.log.DAY.1` and so on. If the lock is taken, another process is rotating,
//! and the others keep writing.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use domain::values::day::Day;
use domain::values::timestamp::Timestamp;
use sys::fs::owner_only;

/// A file of this size is rotated before its day is over.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
const KEPT_DAYS: u32 = 30;
const KEPT_FILES: usize = 64;
/// The length of the time at the start of a line: `2026-01-31T09:30:00.000Z`.
const TIME_BYTES: usize = 24;

#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    pub(super) max_bytes: u64,
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    /// Device and inode.
    identity: (u64, u64),
    /// The day of its first line, once that is known.
    day: Option<Day>,
}

impl JournalFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, max_bytes: MAX_FILE_BYTES, open: None }
    }

    /// Appends as much as can be written, and returns how much that was.
    pub(super) fn append(&mut self, bytes: &[u8], now: Timestamp) -> io::Result<usize> {
        let mut file = self.current(Day::of(now))?;
        let mut written = 0;
        while written < bytes.len() {
            match file.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Return what was written, so that it is not written again.
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
            // A file that cannot be rotated can still be written to.
            let _ = self.rotate(&open, today);
            open = OpenFile::at(&self.path)?;
        }
        Ok(&self.open.insert(open).file)
    }

    /// The open file, if the path still leads to it; otherwise opens the path.
    fn opened(&mut self) -> io::Result<OpenFile> {
        match self.open.take() {
            Some(open) if open.is_at(&self.path) => Ok(open),
            Some(_) | None => OpenFile::at(&self.path),
        }
    }

    fn is_due(&self, open: &mut OpenFile, size: u64, today: Day) -> bool {
        if size == 0 {
            return false;
        }
        // A file that does not begin with a time was not written by queuectl; it counts as today's.
        let day = *open.day.get_or_insert_with(|| first_day(&open.file).unwrap_or(today));
        day < today || size >= self.max_bytes
    }

    fn rotate(&self, open: &OpenFile, today: Day) -> io::Result<()> {
        if open.file.try_lock().is_err() || !open.is_at(&self.path) {
            return Ok(());
        }
        let earlier = self.rotated()?;
        let day = open.day.unwrap_or(today);
        // One more than the highest number, not the first free one: numbers of deleted files are not reused.
        let last = earlier.iter().filter(|file| file.day == day).map(|file| file.number).max();
        let name = RotatedFile { day, number: last.map_or(0, |last| last.saturating_add(1)) };
        fs::rename(&self.path, name.path(&self.path))?;
        self.prune(earlier, today);
        Ok(())
    }

    /// Deletes files that are too old, and the oldest ones if there are too many. Keeps the file that was just rotated:
    /// another process may be about to write to it.
    fn prune(&self, mut earlier: Vec<RotatedFile>, today: Day) {
        earlier.sort_unstable();
        let too_many = (earlier.len() + 1).saturating_sub(KEPT_FILES);
        let oldest = today.days_earlier(KEPT_DAYS);
        for (at, file) in earlier.iter().enumerate() {
            if at < too_many || file.day < oldest {
                // If this fails, the next rotation tries again.
                let _ = fs::remove_file(file.path(&self.path));
            }
        }
    }

    /// The existing rotated files.
    fn rotated(&self) -> io::Result<Vec<RotatedFile>> {
        let stem = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let folder = fs::read_dir(owner_only::folder_of(&self.path))?;
        let read = |entry: io::Result<fs::DirEntry>| {
            RotatedFile::from_suffix(entry.ok()?.file_name().to_str()?.strip_prefix(stem)?)
        };
        Ok(folder.filter_map(read).collect())
    }
}

impl OpenFile {
    fn at(path: &Path) -> io::Result<Self> {
        let file = owner_only::open_to_append(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self { file, identity, day: None })
    }

    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|there| identity(&there) == self.identity)
    }
}

/// A rotated file; files of one day are numbered. Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RotatedFile {
    day: Day,
    number: u32,
}

impl RotatedFile {
    /// Parses the suffix of a rotated file: `.2026-01-31` or `.2026-01-31.2`.
    fn from_suffix(suffix: &str) -> Option<Self> {
        let (day, number) = match suffix.strip_prefix('.')?.split_once('.') {
            Some((day, number)) => (day, number.parse().ok()?),
            None => (&suffix[1..], 0),
        };
        let read = Self { day: day.parse().ok()?, number };
        // Only names that queuectl itself would give may be deleted.
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
    fn only_one_of_two_processes_rotates_a_due_file() {
        let home = tempfile::tempdir().expect("tempdir");
        let log = JournalFile::new(home.path().join("worker.log"));
        let today: Day = "2026-01-31".parse().expect("a day");
        let open = |text| {
            let open = OpenFile::at(&log.path).expect("open");
            (&open.file).write_all(text).expect("write");
            open
        };
        let (first, second) = (open(b"old\n"), open(b""));
        first.file.try_lock().expect("lock");
        log.rotate(&second, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 0, "another process holds the lock");
        log.rotate(&first, today).expect("rotate");
        drop((first, open(b"new\n")));
        log.rotate(&second, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 1, "the new file is not due");
        assert_eq!(fs::read(&log.path).expect("read"), b"new\n");
    }
}
