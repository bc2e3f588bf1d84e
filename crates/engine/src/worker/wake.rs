//! What a worker sleeps on.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// Why a worker woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Signal,
    /// Somebody has orders for this worker.
    Orders,
    /// There may be work for anybody.
    Work,
    /// An attempt has finished.
    Finished,
    /// A hook was told something, or could not be.
    Told,
}

impl Event {
    const ALL: [Self; 5] = [Self::Signal, Self::Orders, Self::Work, Self::Finished, Self::Told];

    fn number(self) -> u64 {
        match self {
            Self::Signal => 0,
            Self::Orders => 1,
            Self::Work => 2,
            Self::Finished => 3,
            Self::Told => 4,
        }
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

    /// Listens to the bell that all workers share, or leaves it to the others. Of those who listen one is woken.
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

    /// Sleeps until something happens, for this long at most.
    pub(crate) fn wait(&self, patience: Duration) -> Vec<Event> {
        let mut events = Vec::with_capacity(Event::ALL.len());
        let timeout = Timespec::try_from(patience).ok();
        // An interrupted sleep is a short one.
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref());
        let happened = |known: &Event| events.iter().any(|event| event.data.u64() == known.number());
        Event::ALL.into_iter().filter(happened).collect()
    }
}
