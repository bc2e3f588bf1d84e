//! A power cut: its position, and which unsynced changes survive it.

use std::fmt;
use std::ops::Range;

/// The unit that a disk writes atomically.
const SECTOR: usize = 512;
/// The unit that a kernel usually writes back.
const PAGE: usize = 4_096;

/// Which unsynced changes reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survivors {
    Nothing,
    Everything,
    /// The changes before this position: the kernel wrote them back in order.
    Until(usize),
    /// Each block of this many bytes, each length and each name has its own cutoff.
    Scattered(usize),
}

/// A cut, fully determined by its seed.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The first record that did not happen.
    pub at: usize,
    pub files: Survivors,
    pub folders: Survivors,
    pub seed: u64,
}

impl Cut {
    /// A random cut before this position.
    pub fn random(at: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            at,
            files: Survivors::random(&mut random, at),
            folders: Survivors::random(&mut random, at),
            seed,
        }
    }

    /// A cut that loses nothing.
    pub fn harmless(at: usize) -> Self {
        Self { at, files: Survivors::Everything, folders: Survivors::Everything, seed: 0 }
    }

    /// The cutoffs of file contents.
    pub fn file_cutoffs(&self) -> Cutoffs {
        Cutoffs { survivors: self.files, at: self.at, random: fastrand::Rng::with_seed(self.seed ^ 1) }
    }

    /// The cutoffs of names.
    pub fn name_cutoffs(&self) -> Cutoffs {
        Cutoffs { survivors: self.folders, at: self.at, random: fastrand::Rng::with_seed(self.seed ^ 2) }
    }
}

impl Survivors {
    fn random(random: &mut fastrand::Rng, at: usize) -> Self {
        match random.u8(..8) {
            0 | 1 => Self::Nothing,
            2 => Self::Everything,
            3 => Self::Until(random.usize(..=at)),
            4 | 5 => Self::Scattered(PAGE),
            _ => Self::Scattered(SECTOR),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cut before record {}; surviving unsynced changes: in files {}", self.at, self.files)?;
        write!(out, ", in folders {} (seed {:#x})", self.folders, self.seed)
    }
}

impl fmt::Display for Survivors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("nothing"),
            Self::Everything => out.write_str("everything"),
            Self::Until(at) => write!(out, "those before record {at}"),
            Self::Scattered(bytes) => write!(out, "each {bytes} bytes or name up to its own cutoff"),
        }
    }
}

/// Draws a cutoff for each name, length or block: changes before that position survive.
#[derive(Clone, Debug)]
pub struct Cutoffs {
    survivors: Survivors,
    at: usize,
    random: fastrand::Rng,
}

impl Cutoffs {
    pub fn everything() -> Self {
        Self { survivors: Survivors::Everything, at: usize::MAX, random: fastrand::Rng::with_seed(0) }
    }

    /// The cutoff of an indivisible item: a name, the length of a file.
    pub fn draw(&mut self) -> usize {
        match self.survivors {
            Survivors::Nothing => 0,
            Survivors::Everything => usize::MAX,
            Survivors::Until(at) => at,
            // As on a real disk, the newest and the oldest version are more likely than one in between.
            Survivors::Scattered(_) => match self.random.u8(..6) {
                0..=2 => usize::MAX,
                3 | 4 => 0,
                _ => self.random.usize(..=self.at),
            },
        }
    }

    /// The cutoffs of the blocks of a file of this length.
    pub fn blocks(&mut self, length: usize) -> Blocks {
        let size = match self.survivors {
            Survivors::Nothing | Survivors::Everything | Survivors::Until(_) => length.max(1),
            Survivors::Scattered(size) => size,
        };
        Blocks { size, cutoffs: (0..length.div_ceil(size)).map(|_| self.draw()).collect() }
    }
}

#[derive(Clone, Debug)]
pub struct Blocks {
    size: usize,
    cutoffs: Vec<usize>,
}

/// The part of a change that is in one block.
#[derive(Clone, Debug)]
pub struct Part {
    pub range: Range<usize>,
    pub cutoff: usize,
}

impl Blocks {
    /// A range, split at block boundaries.
    pub fn touched(&self, range: &Range<usize>) -> impl Iterator<Item = Part> {
        let last = if range.is_empty() { 0 } else { range.end.div_ceil(self.size) };
        let blocks = range.start / self.size..last;
        blocks.map(|block| {
            let start = range.start.max(block * self.size);
            Part { range: start..range.end.min((block + 1) * self.size), cutoff: self.cutoffs[block] }
        })
    }
}
