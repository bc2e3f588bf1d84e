//! Sets of signals, and the signal mask of a thread.

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
    /// The signals with these numbers; real-time signals have no name.
    pub(crate) fn of(numbers: impl IntoIterator<Item = libc::c_int>) -> Self {
        let mut set = Self::none();
        for number in numbers {
            // SAFETY: the set is initialised. A number that is not a signal's changes nothing.
            unsafe { libc::sigaddset(&raw mut set.0, number) };
        }
        set
    }

    pub(crate) fn none() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the whole set and cannot fail for a valid pointer.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(crate) fn all() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigfillset` initialises the whole set and cannot fail for a valid pointer.
        unsafe {
            libc::sigfillset(set.as_mut_ptr());
            Self(set.assume_init())
        }
    }

    pub(crate) fn without(mut self, signal: Signal) -> Self {
        // SAFETY: the set is initialised, and the number is a signal's.
        unsafe { libc::sigdelset(&raw mut self.0, signal.as_raw()) };
        self
    }

    /// Adds these signals to the mask of this thread and returns the previous mask.
    pub(crate) fn block(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_BLOCK)
    }

    pub(crate) fn unblock(&self) -> io::Result<()> {
        self.change_mask(libc::SIG_UNBLOCK).map(drop)
    }

    /// Makes this set the mask of this thread and returns the previous mask.
    pub(crate) fn set_as_mask(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_SETMASK)
    }

    fn change_mask(&self, how: libc::c_int) -> io::Result<Self> {
        let mut before = Self::none();
        // SAFETY: both sets are initialised, and the call changes the mask of this thread only.
        match unsafe { libc::pthread_sigmask(how, &raw const self.0, &raw mut before.0) } {
            0 => Ok(before),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// A descriptor from which these signals are read.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        // SAFETY: the set is initialised; -1 asks for a new descriptor instead of changing an existing one.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const self.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `signalfd` has just opened the descriptor, so nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }
}
