//! How a worker would be woken. Nothing wakes it yet: it polls.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

use crate::{OrderHints, Result, StoreError, Wake};

/// Two descriptors that never become readable. A worker watches both, and a descriptor can be watched only once.
#[derive(Debug)]
pub(super) struct Silence {
    work: OwnedFd,
    orders: OwnedFd,
}

impl Silence {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { work: silent()?, orders: silent()? })
    }
}

fn silent() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| StoreError::unavailable(error.into()))
}

impl Wake for Silence {
    fn work(&self) -> BorrowedFd<'_> {
        self.work.as_fd()
    }

    fn take_work(&self) -> Option<u8> {
        None
    }

    fn pass_on(&self, _hops: u8) {}

    fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    fn take_orders(&self) -> OrderHints {
        OrderHints::default()
    }
}
