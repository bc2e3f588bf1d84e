//! A writer that does not wait for a slow reader: output that the reader does not take yet goes to a temporary file.
//!
//! An export reads from one snapshot of the queue, and while the snapshot is open, SQLite cannot reset the write-ahead log.
//! A reader that pauses would let the log grow without bound. The export waits for its reader only if the disk is nearly
//! full.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::status::LOW_SPACE_BYTES;
use sys::fs::{disk, owner_only};

/// A pipe that is ready for writing accepts this many bytes without blocking (`PIPE_BUF`).
const PIPE_BYTES: usize = 4_096;
/// How many bytes are copied at once when blocking is allowed.
const COPY_BYTES: usize = 64 << 10;

/// The caller must flush it at the end, which waits for the reader.
#[derive(Debug)]
pub struct SpooledWriter<W> {
    out: W,
    folder: PathBuf,
    spool: Option<Spool>,
}

/// An unlinked file: the kernel deletes it when this process ends, however that happens.
#[derive(Debug)]
struct Spool {
    file: File,
    drained: u64,
    end: u64,
}

impl<W: Write + AsFd> SpooledWriter<W> {
    /// `folder` is where the temporary file is created.
    pub fn new(out: W, folder: &Path) -> Self {
        Self { out, folder: folder.to_owned(), spool: None }
    }

    fn has_room(&self) -> bool {
        let mut descriptor = [PollFd::new(&self.out, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut descriptor, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Copies the file to the reader: all of it if `waits`, else as much as the reader takes now. Returns whether it is empty.
    fn drain_spool(&mut self, waits: bool) -> io::Result<bool> {
        let mut part = vec![0; if waits { COPY_BYTES } else { PIPE_BYTES }];
        while let Some(Spool { file, drained, end }) = &self.spool {
            if drained == end {
                self.spool = None;
                break;
            }
            if !waits && !self.has_room() {
                return Ok(false);
            }
            let length = file.read_at(&mut part, *drained)?;
            self.out.write_all(&part[..length])?;
            if let Some(spool) = &mut self.spool {
                spool.drained += length as u64;
            }
        }
        Ok(true)
    }

    /// Appends to the file, or waits for the reader if the disk is nearly full.
    fn spool_or_wait(&mut self, bytes: &[u8]) -> io::Result<()> {
        if has_space(&self.folder) {
            if self.spool.is_none() {
                let path = self.folder.join(format!("export-{}.spool", std::process::id()));
                self.spool = unnamed_file(&path).ok().map(|file| Spool { file, drained: 0, end: 0 });
            }
            if let Some(spool) = &mut self.spool
                && spool.file.write_all_at(bytes, spool.end).is_ok()
            {
                spool.end += bytes.len() as u64;
                return Ok(());
            }
        }
        self.drain_spool(true)?;
        self.out.write_all(bytes)
    }
}

/// Whether the file may grow: the last free space is reserved for the queue.
fn has_space(folder: &Path) -> bool {
    disk::free_bytes(folder).is_ok_and(|free| free >= LOW_SPACE_BYTES)
}

impl<W: Write + AsFd> Write for SpooledWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        if self.drain_spool(false)? {
            while !rest.is_empty() && self.has_room() {
                let (now, later) = rest.split_at(rest.len().min(PIPE_BYTES));
                self.out.write_all(now)?;
                rest = later;
            }
        }
        if !rest.is_empty() {
            self.spool_or_wait(rest)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain_spool(true)?;
        self.out.flush()
    }
}

/// A file that had this name only while it was made, so it goes with this process, however that ends.
pub(crate) fn unnamed_file(path: &Path) -> io::Result<File> {
    let file = owner_only::replace_file(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn the_writer_does_not_wait_for_a_paused_reader_which_still_receives_everything() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let (mut reader, writer) = (File::from(reader), File::from(writer));
        let mut out = SpooledWriter::new(writer, folder.path());
        let whole: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (before, after) = whole.split_at(whole.len() / 2);
        before.chunks(100_003).for_each(|part| out.write_all(part).expect("the writer does not block"));
        let mut read = vec![0; 300_000];
        reader.read_exact(&mut read[..30_000]).expect("the pipe has data");
        // The spooled bytes must come before the new ones.
        after.chunks(7_777).for_each(|part| out.write_all(part).expect("the writer does not block"));
        let rest = std::thread::scope(|scope| {
            let rest = scope.spawn(|| {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).expect("the writer closes the pipe");
                rest
            });
            out.flush().expect("the reader takes everything");
            drop(out);
            rest.join().expect("the reader ends")
        });
        read.truncate(30_000);
        read.extend(rest);
        assert!(read == whole, "{} bytes of {}", read.len(), whole.len());
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "the temporary file is deleted");
    }

    #[test]
    fn the_writer_waits_for_the_reader_if_the_file_cannot_grow() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let (mut reader, writer) = (File::from(reader), File::from(writer));
        let mut out = SpooledWriter::new(writer, folder.path());
        let path = folder.path().join("spool");
        std::fs::write(&path, "first ").expect("a file");
        // Writing to a file that was opened for reading fails.
        let file = File::open(&path).expect("a file");
        out.spool = Some(Spool { file, drained: 0, end: 6 });
        let later = vec![b'x'; 1 << 20];
        let read = std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).expect("the writer closes the pipe");
                read
            });
            out.spool_or_wait(&later).expect("the reader takes it");
            drop(out);
            read.join().expect("the reader ends")
        });
        assert!(read == [b"first ", &later[..]].concat(), "{} bytes", read.len());
    }
}
