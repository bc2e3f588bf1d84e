//! A writer that does not wait for a slow reader: output that the reader does not take yet goes to a temporary file.
//!
//! An export reads from one snapshot of the queue, and while the snapshot is open, SQLite cannot reset the write-ahead log.
//! A reader that pauses would let the log grow without bound. The export waits for its reader only if the disk is nearly
//! full.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::status::LOW_SPACE_BYTES;
use sys::fs::{disk, owner_only};

/// A pipe that is ready for writing accepts this many bytes without blocking (`PIPE_BUF`).
const PIPE_BYTES: usize = 4_096;

/// The caller must flush it at the end, which waits for the reader.
#[derive(Debug)]
pub struct SpooledWriter {
    /// Unbuffered: the writer must know exactly how many bytes were accepted.
    out: File,
    folder: PathBuf,
    /// The bytes that the reader gets next. All further bytes follow them.
    spool: Option<File>,
}

impl SpooledWriter {
    /// `folder` is where the temporary file is created.
    pub fn new(out: File, folder: &Path) -> Self {
        Self { out, folder: folder.to_owned(), spool: None }
    }

    fn has_room(&self) -> bool {
        let mut descriptor = [PollFd::new(&self.out, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut descriptor, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Appends to the file, or waits for the reader if the disk is nearly full: the last free space is reserved for the
    /// queue.
    fn spool_or_wait(&mut self, bytes: &[u8]) -> io::Result<()> {
        if disk::free_bytes(&self.folder).is_ok_and(|free| free >= LOW_SPACE_BYTES) {
            if self.spool.is_none() {
                self.spool =
                    unnamed_file(&self.folder.join(format!("export-{}.spool", std::process::id()))).ok();
            }
            if let Some(spool) = &self.spool {
                let end = spool.metadata()?.len();
                if spool.write_all_at(bytes, end).is_ok() {
                    return Ok(());
                }
                // Some of the bytes may have been written.
                let _ = spool.set_len(end);
            }
        }
        self.drain()?;
        self.out.write_all(bytes)
    }

    /// Copies the file to the reader.
    fn drain(&mut self) -> io::Result<()> {
        if let Some(mut spool) = self.spool.take() {
            spool.rewind()?;
            io::copy(&mut spool, &mut self.out)?;
        }
        Ok(())
    }
}

impl Write for SpooledWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.spool.is_none() && self.has_room() {
            let now = &bytes[..bytes.len().min(PIPE_BYTES)];
            self.out.write_all(now)?;
            return Ok(now.len());
        }
        self.spool_or_wait(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.out.flush()
    }
}

/// A file without a name: the kernel deletes it when this process ends, however that happens.
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
        out.spool = Some(file);
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
