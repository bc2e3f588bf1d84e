//! A power cut: when it comes, and what of the changes that were not synced is found afterwards.

use std::fmt;
use std::ops::Range;

/// What a disk guarantees to write as a whole.
const SECTOR: usize = 512;
/// What a kernel usually writes back at once.
const PAGE: usize = 4_096;

/// Which of the changes that no sync covers reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Nothing,
    Everything,
    /// Those before this position: they were written back in their order.
    Until(usize),
    /// Each block of this many bytes, each length and each name is as it was at a moment of its own.
    Scattered(usize),
}

/// A cut, fully determined by its seed.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The first record that did not happen any more.
    pub at: usize,
    pub files: Kept,
    pub folders: Kept,
    pub seed: u64,
}

impl Cut {
    /// A random cut before this position.
    pub fn random(at: usize, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self { at, files: Kept::random(&mut random, at), folders: Kept::random(&mut random, at), seed }
    }

    /// The cut after which nothing is missing.
    pub fn harmless(at: usize) -> Self {
        Self { at, files: Kept::Everything, folders: Kept::Everything, seed: 0 }
    }

    /// The moments at which files are found.
    pub fn file_limits(&self) -> Limits {
        Limits { kept: self.files, at: self.at, random: fastrand::Rng::with_seed(self.seed ^ 1) }
    }

    /// The moments at which names are found.
    pub fn name_limits(&self) -> Limits {
        Limits { kept: self.folders, at: self.at, random: fastrand::Rng::with_seed(self.seed ^ 2) }
    }
}

impl Kept {
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
        write!(out, "cut before record {}, of what was not synced: in files {}", self.at, self.files)?;
        write!(out, ", in folders {} (seed {:#x})", self.folders, self.seed)
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("nothing"),
            Self::Everything => out.write_str("everything"),
            Self::Until(at) => write!(out, "what came before record {at}"),
            Self::Scattered(bytes) => write!(out, "each {bytes} bytes or name as at a moment of its own"),
        }
    }
}

/// Draws, for one thing after the other, the moment at which it is found: changes before that position are kept.
#[derive(Clone, Debug)]
pub struct Limits {
    kept: Kept,
    at: usize,
    random: fastrand::Rng,
}

impl Limits {
    pub fn everything() -> Self {
        Self { kept: Kept::Everything, at: usize::MAX, random: fastrand::Rng::with_seed(0) }
    }

    /// The moment of something that is whole: a name, the length of a file.
    pub fn moment(&mut self) -> usize {
        match self.kept {
            Kept::Nothing => 0,
            Kept::Everything => usize::MAX,
            Kept::Until(at) => at,
            // The newest or the oldest are likelier than something in between: so are they on a disk.
            Kept::Scattered(_) => match self.random.u8(..6) {
                0..=2 => usize::MAX,
                3 | 4 => 0,
                _ => self.random.usize(..=self.at),
            },
        }
    }

    /// The moments of the blocks of a file of this length.
    pub fn blocks(&mut self, length: usize) -> Blocks {
        let size = match self.kept {
            Kept::Nothing | Kept::Everything | Kept::Until(_) => length.max(1),
            Kept::Scattered(size) => size,
        };
        Blocks { size, limits: (0..length.div_ceil(size)).map(|_| self.moment()).collect() }
    }
}

#[derive(Clone, Debug)]
pub struct Blocks {
    size: usize,
    limits: Vec<usize>,
}

/// The part of a change that falls into one block.
#[derive(Clone, Debug)]
pub struct Part {
    pub range: Range<usize>,
    pub limit: usize,
}

impl Blocks {
    /// A range, cut at the borders of blocks.
    pub fn touched(&self, range: &Range<usize>) -> impl Iterator<Item = Part> {
        let last = if range.is_empty() { 0 } else { range.end.div_ceil(self.size) };
        let blocks = range.start / self.size..last;
        blocks.map(|block| {
            let start = range.start.max(block * self.size);
            Part { range: start..range.end.min((block + 1) * self.size), limit: self.limits[block] }
        })
    }
}
