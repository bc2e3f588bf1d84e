//! Sets of signals, and what a thread blocks.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::Signal;

#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SignalSet")
    }
}

#[expect(unsafe_code, reason = "there are no safe wrappers for sets of signals")]
impl SignalSet {
    pub(crate) fn of(signals: impl Iterator<Item = Signal>) -> Self {
        let mut set = Self::none();
        for signal in signals {
            // SAFETY: the set is whole and the number is a signal's.
            unsafe { libc::sigaddset(&raw mut set.0, signal.as_raw()) };
        }
        set
    }

    pub(crate) fn none() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` makes the set whole.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(crate) fn all() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigfillset` makes the set whole.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(crate) fn without(mut self, signal: Signal) -> Self {
        // SAFETY: the set is whole and the number is a signal's.
        unsafe { libc::sigdelset(&raw mut self.0, signal.as_raw()) };
        self
    }

    /// Blocks these signals too, for this thread; gives back what it blocked before.
    pub(crate) fn block(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_BLOCK)
    }

    pub(crate) fn unblock(&self) -> io::Result<()> {
        self.change_mask(libc::SIG_UNBLOCK).map(drop)
    }

    /// Blocks these signals and no others, for this thread; gives back what it blocked before.
    pub(crate) fn be_mask(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_SETMASK)
    }

    fn change_mask(&self, how: libc::c_int) -> io::Result<Self> {
        let mut before = Self::none();
        // SAFETY: both sets are whole.
        match unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// A descriptor from which these signals are read.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is whole; -1 asks for a new descriptor, which is nobody else's yet.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened and belongs to nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}
