//! Output that never waits for its reader before it is whole: what the reader does not take yet goes to a file.
//!
//! An export is told from one view of the queue, and while that view lasts, the write-ahead log cannot begin anew. A reader
//! that pauses would let it grow for as long as it likes. Only where the disk is nearly full does the export wait for it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::status::LOW_SPACE_BYTES;
use sys::fs::{disk, owner_only};

/// A pipe that takes anything takes so much without a wait.
const PIPE_BYTES: usize = 4_096;
/// How much is passed on at once when nobody minds waiting.
const COPY_BYTES: usize = 64 << 10;

/// To be flushed in the end, which waits for the reader.
#[derive(Debug)]
pub struct Spooled<W> {
    out: W,
    folder: PathBuf,
    spool: Option<Spool>,
}

/// A file without a name: it goes with this process, however that ends.
#[derive(Debug)]
struct Spool {
    file: File,
    passed_on: u64,
    end: u64,
}

impl<W: Write + AsFd> Spooled<W> {
    /// What does not fit goes to a file in this folder.
    pub fn new(out: W, folder: &Path) -> Self {
        Self { out, folder: folder.to_owned(), spool: None }
    }

    fn has_room(&self) -> bool {
        let mut descriptor = [PollFd::new(&self.out, PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut descriptor, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Passes on what is in the file: all of it, or as much as the reader takes now. Whether nothing is left.
    fn pass_on(&mut self, waits: bool) -> io::Result<bool> {
        let mut part = vec![0; if waits { COPY_BYTES } else { PIPE_BYTES }];
        while let Some(Spool { file, passed_on, end }) = &self.spool {
            if passed_on == end {
                self.spool = None;
                break;
            }
            if !waits && !self.has_room() {
                return Ok(false);
            }
            let length = file.read_at(&mut part, *passed_on)?;
            self.out.write_all(&part[..length])?;
            if let Some(spool) = &mut self.spool {
                spool.passed_on += length as u64;
            }
        }
        Ok(true)
    }

    /// Where the disk has no room for a file, the writer waits for the reader.
    fn put_aside(&mut self, bytes: &[u8]) -> io::Result<()> {
        if has_space(&self.folder) {
            if self.spool.is_none() {
                self.spool = nameless(&self.folder).ok().map(|file| Spool { file, passed_on: 0, end: 0 });
            }
            if let Some(spool) = &mut self.spool
                && spool.file.write_all_at(bytes, spool.end).is_ok()
            {
                spool.end += bytes.len() as u64;
                return Ok(());
            }
        }
        self.pass_on(true)?;
        self.out.write_all(bytes)
    }
}

/// Whether a file may grow in this folder: the space below the limit is left to the queue.
fn has_space(folder: &Path) -> bool {
    disk::free_bytes(folder).is_ok_and(|free| free >= LOW_SPACE_BYTES)
}

impl<W: Write + AsFd> Write for Spooled<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        if self.pass_on(false)? {
            while !rest.is_empty() && self.has_room() {
                let (now, later) = rest.split_at(rest.len().min(PIPE_BYTES));
                self.out.write_all(now)?;
                rest = later;
            }
        }
        if !rest.is_empty() {
            self.put_aside(rest)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(true)?;
        self.out.flush()
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!("export-{}.spool", std::process::id()));
    let file = owner_only::replace_file(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn a_reader_that_pauses_is_not_waited_for_and_gets_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let (mut reader, writer) = (File::from(reader), File::from(writer));
        let mut out = Spooled::new(writer, folder.path());
        let whole: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let (before, after) = whole.split_at(whole.len() / 2);
        before.chunks(100_003).for_each(|part| out.write_all(part).expect("nobody need read"));
        let mut read = vec![0; 300_000];
        reader.read_exact(&mut read[..30_000]).expect("some is there");
        // What was put aside comes before what is written now.
        after.chunks(7_777).for_each(|part| out.write_all(part).expect("nobody need read"));
        let rest = std::thread::scope(|scope| {
            let rest = scope.spawn(|| {
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).expect("it ends");
                rest
            });
            out.flush().expect("it is read");
            drop(out);
            rest.join().expect("the reader ends")
        });
        read.truncate(30_000);
        read.extend(rest);
        assert!(read == whole, "{} bytes of {}", read.len(), whole.len());
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "nothing is left");
    }
    #[test]
    fn where_the_file_cannot_grow_the_reader_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
        let (mut reader, writer) = (File::from(reader), File::from(writer));
        let mut out = Spooled::new(writer, folder.path());
        let path = folder.path().join("spool");
        std::fs::write(&path, "first ").expect("a file");
        // A file that was opened for reading refuses to grow.
        let file = File::open(&path).expect("a file");
        out.spool = Some(Spool { file, passed_on: 0, end: 6 });
        let later = vec![b'x'; 1 << 20];
        let read = std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).expect("it ends");
                read
            });
            out.put_aside(&later).expect("the reader takes it");
            drop(out);
            read.join().expect("the reader ends")
        });
        assert!(read == [b"first ", &later[..]].concat(), "{} bytes", read.len());
    }
}
