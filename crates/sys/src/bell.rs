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

/// The first byte of a ring that names a number, which follows it.
const NAMED: u8 = u8::MAX;
const NAMED_BYTES: usize = 1 + size_of::<u64>();
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

    /// Takes all rings since the last time, for a listener to whom some of them name a number.
    pub fn take_named(&self) -> Rings {
        let (mut bytes, mut chunk) = (Vec::new(), [0; CHUNK_BYTES]);
        loop {
            let count = match read(&self.fifo, &mut chunk) {
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(_) => break,
            };
            bytes.extend_from_slice(&chunk[..count]);
            if count < CHUNK_BYTES {
                break;
            }
        }
        Rings::parse(&bytes)
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

/// Rings the bell at `path`, if there is one, and names a number; see [`Bell::take_named`].
pub fn ring_with(path: &Path, number: u64) {
    if let Ok(fifo) = open_fifo(path) {
        let mut ring = [NAMED; NAMED_BYTES];
        ring[1..].copy_from_slice(&number.to_le_bytes());
        // All of it or nothing: it is far shorter than what a pipe takes at once.
        let _ = write(&fifo, &ring);
    }
}

/// What was rung.
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
                Some((number, behind)) if *first == NAMED => {
                    rings.numbers.push(u64::from_le_bytes(*number));
                    bytes = behind;
                }
                Some(_) | None => rings.is_plain = true,
            }
        }
        rings
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::path::PathBuf;

    use super::*;

    /// More than a pipe holds.
    const MANY: usize = 200_000;

    struct Belfry {
        folder: tempfile::TempDir,
    }

    impl Belfry {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().expect("a folder") }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("bell")
        }

        fn bell(&self) -> Bell {
            Bell::open(&self.path()).expect("a bell")
        }
    }

    #[test]
    fn taking_empties_it_and_gives_the_largest() {
        let belfry = Belfry::new();
        let bell = belfry.bell();
        assert_eq!(bell.take(), None, "nobody rang");
        for hops in [3, 7, 0] {
            ring_at(&belfry.path(), hops);
        }
        assert_eq!(bell.take(), Some(7));
        assert_eq!(bell.take(), None, "all were taken");
        bell.ring(0);
        assert_eq!(bell.take(), Some(0), "a ring that goes no further is one");
    }

    #[test]
    fn rings_that_name_numbers_are_told_from_others() {
        let belfry = Belfry::new();
        let bell = belfry.bell();
        assert_eq!(bell.take_named(), Rings::default(), "nobody rang");
        ring_with(&belfry.path(), 7);
        assert_eq!(bell.take_named(), Rings { numbers: vec![7], is_plain: false });
        for number in [1, u64::MAX] {
            ring_at(&belfry.path(), 1);
            ring_with(&belfry.path(), number);
        }
        assert_eq!(bell.take_named(), Rings { numbers: vec![1, u64::MAX], is_plain: true });
        for _ in 0..MANY {
            ring_with(&belfry.path(), 9);
        }
        let rings = bell.take_named();
        assert!(rings.numbers.iter().all(|number| *number == 9) && !rings.is_plain, "none is cut in two");
        ring_with(&belfry.path(), 3);
        assert_eq!(bell.take(), Some(NAMED), "one who knows of no numbers hears a ring");
    }

    #[test]
    fn a_ring_wakes_everybody_and_is_taken_once() {
        let belfry = Belfry::new();
        let (first, second) = (belfry.bell(), belfry.bell());
        ring_at(&belfry.path(), EVERYBODY);
        assert_eq!(second.take(), Some(EVERYBODY));
        assert_eq!(first.take(), None);
    }

    #[test]
    fn ringing_where_nobody_listens_does_nothing() {
        let belfry = Belfry::new();
        ring_at(&belfry.path(), 1);
        assert!(!belfry.path().exists(), "it makes no bell");

        drop(belfry.bell());
        ring_at(&belfry.path(), 1);
        assert_eq!(belfry.bell().take(), None, "whoever comes later does not hear it");
    }

    #[test]
    fn many_rings_block_nobody_and_are_taken_at_once() {
        let belfry = Belfry::new();
        let bell = belfry.bell();
        bell.ring(9);
        for _ in 0..MANY {
            bell.ring(1);
        }
        ring_at(&belfry.path(), 8);
        assert_eq!(bell.take(), Some(9));
        assert_eq!(bell.take(), None);
    }

    #[test]
    fn it_is_a_fifo_for_its_owner_only() {
        let belfry = Belfry::new();
        let _bell = belfry.bell();
        let meta = fs::metadata(belfry.path()).expect("metadata");
        assert!(meta.file_type().is_fifo());
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_no_fifo_is_refused_and_left_alone() {
        let belfry = Belfry::new();
        fs::write(belfry.path(), "a diary").expect("write");
        let refused = Bell::open(&belfry.path()).expect_err("a file is no bell");
        assert_eq!(refused.to_string(), "it is there, but no FIFO");
        assert_eq!(fs::read(belfry.path()).expect("read"), b"a diary");

        fs::remove_file(belfry.path()).expect("remove");
        fs::create_dir(belfry.path()).expect("create_dir");
        Bell::open(&belfry.path()).expect_err("a folder is no bell");
    }
}
