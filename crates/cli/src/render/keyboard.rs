//! Single keys from the terminal, without echo.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};

/// The keyboard, which delivers each key at once. Dropping it restores the modes of the terminal, also after a panic;
/// Ctrl-C and Ctrl-Z still send signals.
pub(crate) struct Keyboard {
    modes: Termios,
}

impl Keyboard {
    /// `None` if standard input is not a terminal, or if the shell runs this process in the background.
    pub(crate) fn open() -> Option<Self> {
        let modes = tcgetattr(stdin()).ok()?;
        // In the background, setting the modes would stop this process.
        if tcgetpgrp(stdin()).is_ok_and(|group| group != getpgrp()) {
            return None;
        }
        let mut changed = modes.clone();
        changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &changed).ok()?;
        Some(Self { modes })
    }

    /// The keys that were pressed. An error means that the terminal is gone.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let mut keys = [0; 64];
        match rustix::io::read(self, &mut keys) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(keys[..count].to_vec()),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        stdin()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Keys that were pressed and not read were not for the shell. Errors mean that the terminal is gone.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.modes);
    }
}
