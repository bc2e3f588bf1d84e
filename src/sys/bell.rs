//! A bell that one process rings and others watch: a FIFO that carries single bytes.
//!
//! A ring is a hint that may get lost: nobody relies on it alone. Whoever listens holds the FIFO open; what is rung
//! while nobody does is gone. The byte says how often the ring may be passed on from one listener to the next.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkfifoat, open};
use rustix::io::{Errno, read, write};

/// For a ring that everybody may have to hear of.
pub const EVERYBODY: u8 = 64;

/// How much is read at once. A pipe that is full empties in a few steps.
const CHUNK_BYTES: usize = 4_096;

#[derive(Debug)]
pub struct Bell {
    fifo: OwnedFd,
}

impl Bell {
    /// Opens the bell at `path`; one that is missing is made, for its owner only.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fifo = match open_fifo(path) {
            Err(Errno::NOENT) => {
                make(path)?;
                open_fifo(path)?
            }
            opened => opened?,
        };
        if !FileType::from_raw_mode(fstat(&fifo)?.st_mode).is_fifo() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there, but no FIFO"));
        }
        Ok(Self { fifo })
    }

    /// Rings it. One that has not been heard for long is full, and loud enough.
    pub fn ring(&self, hops: u8) {
        let _ = write(&self.fifo, &[hops]);
    }

    /// Takes all rings since the last time: the largest, if there were any.
    pub fn take(&self) -> Option<u8> {
        let mut chunk = [0; CHUNK_BYTES];
        let mut largest = None;
        loop {
            let rings = match read(&self.fifo, &mut chunk) {
                Ok(count) => &chunk[..count],
                Err(Errno::INTR) => continue,
                Err(_) => return largest,
            };
            largest = largest.max(rings.iter().copied().max());
            // Less than asked for means that there was no more.
            if rings.len() < CHUNK_BYTES {
                return largest;
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}

/// Rings the bell at `path`, if there is one. Nothing comes of it if nobody listens.
pub fn ring_at(path: &Path, hops: u8) {
    if let Ok(fifo) = open_fifo(path) {
        let _ = write(&fifo, &[hops]);
    }
}

/// For reading too: a process that only writes would be killed by SIGPIPE if the last listener left just then.
fn open_fifo(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}

fn make(path: &Path) -> io::Result<()> {
    match mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR) {
        // Somebody else was quicker.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
