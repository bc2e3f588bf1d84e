//! Bells by which the threads of a worker wake each other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::Interrupt;

/// How the ledger interrupts or notifies one slot, and the worker one lane of the delivery pool.
#[derive(Debug)]
pub(crate) struct SlotBell {
    bell: EventBell,
    notice: Mutex<Notice>,
}

/// The notifications that a slot has received and not taken yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) interrupt: Option<Interrupt>,
    /// A reader follows the output.
    pub(crate) is_watched: bool,
    /// Pause the attempt, or continue it.
    pub(crate) pause: Option<bool>,
}

impl SlotBell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { bell: EventBell::new()?, notice: Mutex::default() })
    }

    fn notice(&self) -> MutexGuard<'_, Notice> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self, why: Interrupt) {
        let mut notice = self.notice();
        // A softer interrupt must not replace a pending stronger one, but the signal of a later cancellation counts.
        let is_weaker = |before: Interrupt| {
            before <= why || matches!((before, why), (Interrupt::Cancel(_), Interrupt::Cancel(_)))
        };
        if notice.interrupt.is_none_or(is_weaker) {
            notice.interrupt = Some(why);
        }
        drop(notice);
        self.bell.ring();
    }

    pub(super) fn ring_for_reader(&self) {
        self.notice().is_watched = true;
        self.bell.ring();
    }

    pub(super) fn ring_to_pause(&self, pause: bool) {
        self.notice().pause = Some(pause);
        self.bell.ring();
    }

    /// Takes the pending notice.
    pub(crate) fn take(&self) -> Notice {
        // Cleared first: a ring that comes in between rings the bell again.
        self.bell.clear();
        std::mem::take(&mut self.notice())
    }

    /// Discards a notice that was addressed to the previous attempt.
    pub(super) fn reset(&self) {
        if std::mem::take(&mut *self.notice()) != Notice::default() {
            self.bell.clear();
        }
    }
}

impl AsFd for SlotBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A descriptor that is readable from the first ring until it is cleared.
#[derive(Debug)]
pub(crate) struct EventBell(OwnedFd);

impl EventBell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // It can only fail if the bell already rings.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        // It can only fail if the bell does not ring.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for EventBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
