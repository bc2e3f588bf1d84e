//! A bell that one process rings and other processes listen to: a FIFO that carries single bytes.
//!
//! A ring is only a hint and may get lost; no process relies on it alone. A listener keeps the FIFO open, and a ring
//! without a listener is lost. The byte is the number of times that the ring may be passed on to the next listener.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkfifoat, open};
use rustix::io::{Errno, read, write};

use crate::fs::owner_access::OwnerAccess;

/// The number of hops of a ring that may have to reach every listener.
pub const MAX_HOPS: u8 = 64;

/// The first byte of a ring that carries a number; the number follows it.
const NUMBERED: u8 = u8::MAX;
const NUMBERED_BYTES: usize = 1 + size_of::<u64>();
/// The size of a read. A full pipe is emptied in a few reads.
const CHUNK_BYTES: usize = 4_096;

#[derive(Debug)]
pub struct Bell {
    fifo: OwnedFd,
}

impl Bell {
    /// Opens the bell at `path`. A missing one is created, accessible to its owner only.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fifo = match open_fifo(path) {
            Err(Errno::NOENT) => {
                make(path)?;
                open_fifo(path)?
            }
            opened => opened?,
        };
        if !FileType::from_raw_mode(fstat(&fifo)?.st_mode).is_fifo() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it exists but is not a FIFO"));
        }
        Ok(Self { fifo })
    }

    /// Rings the bell. If the pipe is full, the listeners have enough rings to read already.
    pub fn ring(&self, hops: u8) {
        let _ = write(&self.fifo, &[hops]);
    }

    /// Takes all rings since the last call, for a listener that distinguishes rings with a number.
    pub fn take_numbered(&self) -> Rings {
        let mut bytes = Vec::new();
        self.drain(|rings| bytes.extend_from_slice(rings));
        Rings::parse(&bytes)
    }

    /// Takes all rings since the last call and returns the largest number of hops, if there were any.
    pub fn take(&self) -> Option<u8> {
        let mut largest = None;
        self.drain(|rings| largest = largest.max(rings.iter().copied().max()));
        largest
    }

    /// Empties the pipe.
    fn drain(&self, mut each: impl FnMut(&[u8])) {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            let count = match read(&self.fifo, &mut chunk) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            each(&chunk[..count]);
            // A short read means that the pipe is empty.
            if count < CHUNK_BYTES {
                return;
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fifo.as_fd()
    }
}

/// Rings the bell at `path`, if it exists. Without a listener this has no effect.
pub fn ring_at(path: &Path, hops: u8) {
    if let Ok(fifo) = open_fifo(path) {
        let _ = write(&fifo, &[hops]);
    }
}

/// Rings the bell at `path`, if it exists, with a number; see [`Bell::take_numbered`].
pub fn ring_with_number(path: &Path, number: u64) {
    if let Ok(fifo) = open_fifo(path) {
        let mut ring = [NUMBERED; NUMBERED_BYTES];
        ring[1..].copy_from_slice(&number.to_le_bytes());
        // The write is atomic: it is far shorter than PIPE_BUF.
        let _ = write(&fifo, &ring);
    }
}

/// The rings that a listener has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    pub numbers: Vec<u64>,
    /// Whether there was a ring without a number.
    pub is_plain: bool,
}

impl Rings {
    fn parse(mut bytes: &[u8]) -> Self {
        let mut rings = Self::default();
        while let [first, rest @ ..] = bytes {
            bytes = rest;
            match rest.split_first_chunk() {
                Some((number, after)) if *first == NUMBERED => {
                    rings.numbers.push(u64::from_le_bytes(*number));
                    bytes = after;
                }
                Some(_) | None => rings.is_plain = true,
            }
        }
        rings
    }
}

/// Opened for reading too: a process that only writes would be killed by SIGPIPE if the last listener closed it just then.
fn open_fifo(path: &Path) -> Result<OwnedFd, Errno> {
    let _access = OwnerAccess::take().map_err(|_| Errno::PERM)?;
    open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}

fn make(path: &Path) -> io::Result<()> {
    let _access = OwnerAccess::take()?;
    match mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR) {
        // Another process may have been faster.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::path::PathBuf;

    use super::*;

    /// More rings than a pipe holds.
    const MANY: usize = 200_000;

    struct TestBell {
        folder: tempfile::TempDir,
    }

    impl TestBell {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().expect("a directory") }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("bell")
        }

        fn bell(&self) -> Bell {
            Bell::open(&self.path()).expect("open")
        }
    }

    #[test]
    fn taking_empties_the_bell_and_returns_the_largest_ring() {
        let test_bell = TestBell::new();
        let bell = test_bell.bell();
        assert_eq!(bell.take(), None, "no ring yet");
        for hops in [3, 7, 0] {
            ring_at(&test_bell.path(), hops);
        }
        assert_eq!(bell.take(), Some(7));
        assert_eq!(bell.take(), None, "all rings were taken");
        bell.ring(0);
        assert_eq!(bell.take(), Some(0), "a ring without hops is still a ring");
    }

    #[test]
    fn numbered_rings_are_distinguished_from_others() {
        let test_bell = TestBell::new();
        let bell = test_bell.bell();
        assert_eq!(bell.take_numbered(), Rings::default(), "no ring yet");
        ring_with_number(&test_bell.path(), 7);
        assert_eq!(bell.take_numbered(), Rings { numbers: vec![7], is_plain: false });
        for number in [1, u64::MAX] {
            ring_at(&test_bell.path(), 1);
            ring_with_number(&test_bell.path(), number);
        }
        assert_eq!(bell.take_numbered(), Rings { numbers: vec![1, u64::MAX], is_plain: true });
        for _ in 0..MANY {
            ring_with_number(&test_bell.path(), 9);
        }
        let rings = bell.take_numbered();
        assert!(rings.numbers.iter().all(|number| *number == 9) && !rings.is_plain, "no ring is torn");
        ring_with_number(&test_bell.path(), 3);
        assert_eq!(bell.take(), Some(NUMBERED), "a listener that ignores numbers gets a ring");
    }

    #[test]
    fn a_ring_is_taken_by_one_listener() {
        let test_bell = TestBell::new();
        let (first, second) = (test_bell.bell(), test_bell.bell());
        ring_at(&test_bell.path(), MAX_HOPS);
        assert_eq!(second.take(), Some(MAX_HOPS));
        assert_eq!(first.take(), None);
    }

    #[test]
    fn ringing_without_a_listener_does_nothing() {
        let test_bell = TestBell::new();
        ring_at(&test_bell.path(), 1);
        assert!(!test_bell.path().exists(), "it does not create a bell");

        drop(test_bell.bell());
        ring_at(&test_bell.path(), 1);
        assert_eq!(test_bell.bell().take(), None, "a later listener does not get it");
    }

    #[test]
    fn many_rings_do_not_block_and_are_taken_at_once() {
        let test_bell = TestBell::new();
        let bell = test_bell.bell();
        bell.ring(9);
        for _ in 0..MANY {
            bell.ring(1);
        }
        ring_at(&test_bell.path(), 8);
        assert_eq!(bell.take(), Some(9));
        assert_eq!(bell.take(), None);
    }

    #[test]
    fn a_bell_is_a_fifo_for_its_owner_only() {
        let test_bell = TestBell::new();
        let _bell = test_bell.bell();
        let meta = fs::metadata(test_bell.path()).expect("metadata");
        assert!(meta.file_type().is_fifo());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_not_a_fifo_is_refused_and_left_alone() {
        let test_bell = TestBell::new();
        fs::write(test_bell.path(), "a diary").expect("write");
        let refused = Bell::open(&test_bell.path()).expect_err("not a FIFO");
        assert_eq!(refused.to_string(), "it exists but is not a FIFO");
        assert_eq!(fs::read(test_bell.path()).expect("read"), b"a diary");

        fs::remove_file(test_bell.path()).expect("remove");
        fs::create_dir(test_bell.path()).expect("create_dir");
        Bell::open(&test_bell.path()).expect_err("not a FIFO");
    }
}
