//! The file that all processes of a home append to, and its rotation.
//!
//! No line is lost: each writer appends with one system call, which the kernel does not interleave with others; the
//! file is only renamed, never truncated; and before each write the writer checks that the path still leads to its open
//! file. A writer that is slightly too late appends to the renamed file.
//!
//! The process that rotates holds the lock of the file, checks under it that the path still leads to this file, and
//! renames it to `worker.log.DAY`, or `worker.log.DAY.1` and so on. If the lock is taken, another process is rotating,
//! and the others keep writing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
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
    /// The open file, and the day on which it was opened.
    open: Option<(File, Day)>,
}

impl JournalFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, max_bytes: MAX_FILE_BYTES, open: None }
    }

    /// Appends as much as one write can, and returns how much that was.
    pub(super) fn append(&mut self, bytes: &[u8], now: Timestamp) -> io::Result<usize> {
        self.current(Day::of(now))?.write(bytes)
    }

    /// The file to write to today.
    fn current(&mut self, today: Day) -> io::Result<&mut File> {
        let kept = self.open.take().filter(|(file, _)| self.is_at(file));
        let mut open = kept.map_or_else(|| self.open(today), Ok)?;
        // A file that does not begin with a time was not written by queuectl; it counts as of the day it was opened.
        let day = first_day(&open.0).unwrap_or(open.1);
        let size = open.0.metadata()?.len();
        if size > 0 && (day < today || size >= self.max_bytes) {
            // A file that cannot be rotated can still be written to.
            let _ = self.rotate(&open.0, day, today);
            open = self.open(today)?;
        }
        Ok(&mut self.open.insert(open).0)
    }

    fn open(&self, today: Day) -> io::Result<(File, Day)> {
        Ok((owner_only::open_to_append(&self.path)?, today))
    }

    /// Whether the path still leads to this file.
    fn is_at(&self, file: &File) -> bool {
        owner_only::is_at(file, &self.path).unwrap_or(false)
    }

    /// Renames the file, and deletes files that are too old, and the oldest ones if there are too many.
    fn rotate(&self, file: &File, day: Day, today: Day) -> io::Result<()> {
        if file.try_lock().is_err() || !self.is_at(file) {
            return Ok(());
        }
        let mut earlier = self.rotated()?;
        earlier.sort_unstable();
        // One more than the highest number, not the first free one: numbers of deleted files are not reused.
        let last = earlier.iter().rfind(|file| file.day == day);
        let number = last.map_or(0, |last| last.number.saturating_add(1));
        fs::rename(&self.path, RotatedFile { day, number }.path(&self.path))?;
        // Not the file that was just rotated: another process may be about to write to it.
        let too_many = (earlier.len() + 1).saturating_sub(KEPT_FILES);
        let oldest = today.days_earlier(KEPT_DAYS);
        for (at, file) in earlier.iter().enumerate() {
            if at < too_many || file.day < oldest {
                // If this fails, the next rotation tries again.
                let _ = fs::remove_file(file.path(&self.path));
            }
        }
        Ok(())
    }

    /// The paths of the existing rotated files, the newest first.
    pub(super) fn rotated_paths(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = self.rotated()?;
        files.sort_unstable();
        Ok(files.iter().rev().map(|file| file.path(&self.path)).collect())
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

/// A rotated file; files of one day are numbered. Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RotatedFile {
    day: Day,
    number: u32,
}

impl RotatedFile {
    /// Parses the suffix of a rotated file: `.2026-01-31` or `.2026-01-31.2`.
    fn from_suffix(suffix: &str) -> Option<Self> {
        let name = suffix.strip_prefix('.')?;
        let (day, number) = name.split_once('.').unwrap_or((name, "0"));
        let read = Self { day: day.parse().ok()?, number: number.parse().ok()? };
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

fn first_day(file: &File) -> Option<Day> {
    let mut time = [0; TIME_BYTES];
    file.read_exact_at(&mut time, 0).ok()?;
    str::from_utf8(&time).ok()?.parse().ok().map(Day::of)
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
            let (mut file, _) = log.open(today).expect("open");
            file.write_all(text).expect("write");
            file
        };
        let (first, second) = (open(b"old\n"), open(b""));
        first.try_lock().expect("lock");
        log.rotate(&second, today, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 0, "another process holds the lock");
        log.rotate(&first, today, today).expect("rotate");
        drop((first, open(b"new\n")));
        log.rotate(&second, today, today).expect("rotate");
        assert_eq!(log.rotated().expect("list").len(), 1, "the new file is not due");
        assert_eq!(fs::read(&log.path).expect("read"), b"new\n");
    }
}
