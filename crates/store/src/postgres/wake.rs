//! How a worker would be woken. Nothing wakes it yet: it polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::{OrderHints, Result, StoreError, Wake};

/// A descriptor that never becomes readable.
#[derive(Debug)]
pub(super) struct Silence(OwnedFd);

impl Silence {
    pub(super) fn new() -> Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        descriptor.map(Self).map_err(|error| StoreError::unavailable(error.into()))
    }
}

impl Wake for Silence {
    fn work(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn take_work(&self) -> Option<u8> {
        None
    }

    fn pass_on(&self, _hops: u8) {}

    fn orders(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn take_orders(&self) -> OrderHints {
        OrderHints::default()
    }
}
