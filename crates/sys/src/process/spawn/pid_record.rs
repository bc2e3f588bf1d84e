//! The record of a new process, which the process writes itself before it executes its program: so no program runs whose
//! pid is not on record, whenever its starter dies.

use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::clock::boot_ticks;

/// Where a new process writes its pid, and the range of ticks since boot in which it was started: ` PID FROM TO\n`.
#[derive(Clone, Copy, Debug)]
pub struct PidRecord<'a> {
    pub file: BorrowedFd<'a>,
    pub offset: u64,
    /// The time before the start.
    pub since_ticks: u64,
}

impl PidRecord<'_> {
    /// The longest text: three numbers of up to 20 digits.
    const MAX_BYTES: usize = 64;

    /// Writes the record of this process. Neither allocates nor panics. An error is ignored: such a process can be found
    /// in other ways, only more slowly.
    pub(super) fn write(&self) {
        let mut text = [0; Self::MAX_BYTES];
        let mut rest = &mut text[..];
        let pid = rustix::process::getpid().as_raw_pid();
        let _ = writeln!(rest, " {pid} {} {}", self.since_ticks, boot_ticks() + 1);
        let length = Self::MAX_BYTES - rest.len();
        // SAFETY: the borrow keeps the descriptor open, and `length` bytes of `text` are initialised.
        #[expect(unsafe_code, reason = "there is no safe wrapper that guarantees not to allocate")]
        unsafe {
            libc::pwrite(self.file.as_raw_fd(), text.as_ptr().cast(), length, self.offset.cast_signed())
        };
    }
}
