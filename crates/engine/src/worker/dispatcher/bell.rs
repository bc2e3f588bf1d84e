//! How threads of a worker wake each other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::Interrupt;

/// How the ledger reaches the one slot that runs something.
#[derive(Debug)]
pub(crate) struct SlotBell {
    bell: EventBell,
    told: Mutex<Told>,
}

/// What a slot was told and has not heard yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) interrupt: Option<Interrupt>,
    /// A reader follows the output.
    pub(crate) is_watched: bool,
}

impl SlotBell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { bell: EventBell::new()?, told: Mutex::default() })
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ring(&self, why: Interrupt) {
        let mut told = self.told();
        // What was not heard yet must not be softened.
        told.interrupt = told.interrupt.max(Some(why));
        drop(told);
        self.bell.ring();
    }

    pub(super) fn ring_of_reader(&self) {
        self.told().is_watched = true;
        self.bell.ring();
    }

    /// What the slot was told, once.
    pub(crate) fn take(&self) -> Told {
        // Silenced first: a ring that comes in between is heard again.
        self.bell.silence();
        std::mem::take(&mut self.told())
    }

    /// What was meant for the last attempt does not concern the next.
    pub(super) fn forget(&self) {
        if std::mem::take(&mut *self.told()) != Told::default() {
            self.bell.silence();
        }
    }
}

impl AsFd for SlotBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A descriptor that is readable from the first ring until it is silenced.
#[derive(Debug)]
pub(crate) struct EventBell(OwnedFd);

impl EventBell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // It can only fail because it rings already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn silence(&self) {
        // It can only fail because it does not ring.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for EventBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
