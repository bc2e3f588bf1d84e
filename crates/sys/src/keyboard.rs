//! Single keys from the terminal, without echo.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};

/// The keyboard, which delivers each key at once. Dropping it restores the modes of the terminal, also after a panic;
/// Ctrl-C and Ctrl-Z still send signals.
#[derive(Debug)]
pub struct Keyboard {
    terminal: OwnedFd,
    modes: Termios,
}

impl Keyboard {
    /// The keyboard of standard input.
    pub fn open() -> Option<Self> {
        Self::of_terminal(stdin().try_clone_to_owned().ok()?)
    }

    /// `None` if it is not a terminal, or if the shell runs this process in the background.
    pub fn of_terminal(terminal: OwnedFd) -> Option<Self> {
        let modes = tcgetattr(&terminal).ok()?;
        // In the background, setting the modes would stop this process.
        if tcgetpgrp(&terminal).is_ok_and(|group| group != getpgrp()) {
            return None;
        }
        let mut changed = modes.clone();
        changed.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &changed).ok()?;
        Some(Self { terminal, modes })
    }

    /// Discards what was typed before.
    pub fn discard_typed(&self) {
        // An error means that the terminal is gone, and reading will report that.
        let _ = tcflush(self, QueueSelector::IFlush);
    }

    /// The keys that were pressed. An error means that the terminal is gone.
    pub fn read(&self) -> io::Result<Vec<u8>> {
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
        self.terminal.as_fd()
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Keys that were pressed and not read were not for the shell.
        self.discard_typed();
        // An error means that the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.modes);
    }
}
