//! The control file that switches faults on and off. Its layout is `struct control` in `shim.c`.
//!
//! Processes map the file and tests write it; on Linux both see the same pages.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The kinds of calls that can fail, in the order of the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// fsync, fdatasync.
    Sync,
    /// write and related calls.
    Write,
    /// ftruncate.
    Truncate,
    /// fallocate and related calls.
    Allocate,
    /// read and related calls.
    Read,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] = [Self::Sync, Self::Write, Self::Truncate, Self::Allocate, Self::Read];
}

/// Which calls fail, counted from the time when the fault is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Never,
    Always,
    /// The next call.
    Once,
    /// The nth call, counted from 1.
    Nth(u64),
    /// This many of 1000 calls, the same ones for the same seed.
    Chance {
        per_mille: u64,
        seed: u64,
    },
}

impl When {
    /// Mode, number, seed.
    fn words(self) -> (u64, u64, u64) {
        match self {
            Self::Never => (0, 0, 0),
            Self::Always => (1, 0, 0),
            Self::Once => (2, 1, 0),
            Self::Nth(number) => (2, number, 0),
            Self::Chance { per_mille, seed } => (3, per_mille, seed),
        }
    }
}

const WORD: u64 = 8;
/// The word offsets within a fault.
const MODE: u64 = 0;
const ERROR: u64 = 1;
const NUMBER: u64 = 2;
const SEED: u64 = 3;
const SEEN: u64 = 4;
const STRUCK: u64 = 5;
const FAULT_WORDS: u64 = 6;
/// The word offsets after the faults.
const DELAY: u64 = FAULT_WORDS * Fault::ALL.len() as u64;
const DELAYED: u64 = DELAY + 1;
const SHIFT: u64 = DELAY + 2;
const SHIFTED: u64 = DELAY + 3;
const SLOWDOWN: u64 = DELAY + 4;
const SUFFIX: u64 = DELAY + 5;
const SUFFIX_BYTES: usize = 128;

#[derive(Debug)]
pub(super) struct Control {
    file: File,
}

impl Control {
    pub(super) fn create(path: &Path) -> Self {
        let options = File::options().read(true).write(true).create_new(true).open(path);
        let file = options.expect("the control file is created");
        file.set_len(SUFFIX * WORD + SUFFIX_BYTES as u64).expect("the control file is resized");
        Self { file }
    }

    pub(super) fn set(&self, fault: Fault, error: i32, when: When) {
        let (mode, number, seed) = when.words();
        let word = |word: u64, value: u64| self.write(fault as u64 * FAULT_WORDS + word, value);
        // Switch the fault off first, so that no process sees an incomplete setting.
        word(MODE, 0);
        word(ERROR, u64::from(error.unsigned_abs()));
        word(NUMBER, number);
        word(SEED, seed);
        word(SEEN, 0);
        word(MODE, mode);
    }

    pub(super) fn seen(&self, fault: Fault) -> u64 {
        self.read(fault as u64 * FAULT_WORDS + SEEN)
    }

    pub(super) fn struck(&self, fault: Fault) -> u64 {
        self.read(fault as u64 * FAULT_WORDS + STRUCK)
    }

    pub(super) fn delay(&self, micros: u64) {
        self.write(DELAY, micros);
    }

    pub(super) fn delayed(&self) -> u64 {
        self.read(DELAYED)
    }

    pub(super) fn shift_clock(&self, seconds: i64) {
        self.write(SHIFT, seconds.cast_unsigned());
    }

    pub(super) fn clock_shifted(&self) -> u64 {
        self.read(SHIFTED)
    }

    pub(super) fn slow_clock(&self, times: u64) {
        self.write(SLOWDOWN, times);
    }

    pub(super) fn only(&self, suffix: &str) {
        let mut bytes = [0; SUFFIX_BYTES];
        bytes[..suffix.len()].copy_from_slice(suffix.as_bytes());
        self.file.write_all_at(&bytes, SUFFIX * WORD).expect("the control file is written");
    }

    fn write(&self, word: u64, value: u64) {
        self.file.write_all_at(&value.to_ne_bytes(), word * WORD).expect("the control file is written");
    }

    fn read(&self, word: u64) -> u64 {
        let mut bytes = [0; size_of::<u64>()];
        self.file.read_exact_at(&mut bytes, word * WORD).expect("the control file is read");
        u64::from_ne_bytes(bytes)
    }
}
