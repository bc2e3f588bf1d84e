//! The epoll instance that a worker sleeps on.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// Why a worker woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Signal,
    /// There are orders for this worker.
    Orders,
    /// There may be work for any worker.
    Work,
    /// An attempt has finished.
    AttemptFinished,
    /// A delivery to a hook has ended.
    DeliveryFinished,
}

impl Event {
    const ALL: [Self; 5] =
        [Self::Signal, Self::Orders, Self::Work, Self::AttemptFinished, Self::DeliveryFinished];

    fn number(self) -> u64 {
        self as u64
    }
}

#[derive(Debug)]
pub(crate) struct Wake {
    epoll: OwnedFd,
    watches_work: bool,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, watches_work: false })
    }

    pub(crate) fn watch(&self, source: impl AsFd, event: Event) -> io::Result<()> {
        self.add(source, event, epoll::EventFlags::IN)
    }

    /// Starts or stops listening to the bell that all workers share. A ring wakes one of the listening workers.
    pub(crate) fn watch_work(&mut self, bell: impl AsFd, watches: bool) -> io::Result<()> {
        if watches == self.watches_work {
            return Ok(());
        }
        if watches {
            self.add(bell, Event::Work, epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE)?;
        } else {
            epoll::delete(&self.epoll, bell)?;
        }
        self.watches_work = watches;
        Ok(())
    }

    fn add(&self, source: impl AsFd, event: Event, flags: epoll::EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, epoll::EventData::new_u64(event.number()), flags)?)
    }

    /// Sleeps until an event arrives or `timeout` expires.
    pub(crate) fn wait(&self, timeout: Duration) -> Vec<Event> {
        let mut events = Vec::with_capacity(Event::ALL.len());
        let timeout = Timespec::try_from(timeout).ok();
        // An interrupted sleep just ends early.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref());
        let happened = |known: &Event| events.iter().any(|event| event.data.u64() == known.number());
        Event::ALL.into_iter().filter(happened).collect()
    }
}
