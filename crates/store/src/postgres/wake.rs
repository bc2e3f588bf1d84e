//! How workers on a server are woken: by notifications on a channel of all workers, whose name is that of the schema, and on
//! one of each worker.
//!
//! | payload | channel | meaning |
//! |---|---|---|
//! | `w:HOPS:WORKER` | the worker's | there may be work for this worker, which may pass the hint on that often |
//! | `o:*` | that of all | there may be orders for every worker |
//! | `r:JOB:WORKER` | the worker's | a reader follows the output of this job |
//!
//! Up to PostgreSQL 18 the server wakes the backends of all listeners of the database for each notification, whatever they
//! listen to; only that of the named worker passes it on. So each costs every listener's backend a moment: only a worker
//! that sleeps is named, and only one. A worker
//! that finds nothing sets `workers.listens`, commits, and looks once more. One that found less than it could start does so
//! in its next turn, which is due at once: the jobs that it has claimed start meanwhile. A process that makes jobs ready
//! clears the mark of one worker that serves them and names it. So either that process sees the mark, or the worker's
//! second look finds the jobs. A worker is not named again before its next look has found nothing.

mod listener;
mod sender;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

pub(super) use self::listener::{Listener, Way, store_id};
pub(super) use self::sender::{ReadyJobs, Sender, name_sleeper, notify};
use crate::{OrderHints, Pace, Result, StoreError, Wake};
use domain::values::name::WorkerId;

/// A process that made many jobs ready does not notify for each. After a hint a worker polls for this long, so that it
/// finds the jobs of the notifications that were left out.
const POLL_AFTER_HINT: Duration = Duration::from_secs(2);
/// A mark is set again after this time: the notification that cleared it may have been lost.
const MARK_AGAIN: Duration = Duration::from_secs(30);

/// What the store of a worker and its listener know of each other.
#[derive(Debug)]
pub(super) struct Hearing {
    pub(super) worker: WorkerId,
    /// The session that listens is there.
    lives: AtomicBool,
    /// It hears nothing, because there is a pooler.
    is_deaf: AtomicBool,
    /// The worker could start more than it found at its last look.
    has_room: AtomicBool,
    /// Its next turn begins with the mark.
    owes_mark: AtomicBool,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    last_hint: Option<Instant>,
    /// Since when the worker's mark is set, as far as it knows.
    marked: Option<Instant>,
}

impl Hearing {
    fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            lives: AtomicBool::new(false),
            is_deaf: AtomicBool::new(false),
            has_room: AtomicBool::new(true),
            owes_mark: AtomicBool::new(false),
            times: Mutex::default(),
        }
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lives(&self) -> bool {
        self.lives.load(Ordering::Relaxed) && !self.is_deaf.load(Ordering::Relaxed)
    }

    pub(super) fn pace(&self) -> Pace {
        let was_woken = self.times().last_hint.is_some_and(|at| at.elapsed() < POLL_AFTER_HINT);
        if self.lives() && !was_woken { Pace::Listening } else { Pace::Polling }
    }

    /// Notes whether the worker has room for more. Returns the mark to write, if that has changed.
    pub(super) fn note_room(&self, has_room: bool) -> Option<bool> {
        self.has_room.store(has_room, Ordering::Relaxed);
        let marked = self.times().marked;
        let listens = has_room && self.lives();
        let is_known =
            if listens { marked.is_some_and(|at| at.elapsed() < MARK_AGAIN) } else { marked.is_none() };
        (!is_known).then_some(listens)
    }

    /// The worker has claimed jobs, and must not start them later because of the mark.
    pub(super) fn put_off_mark(&self) {
        self.owes_mark.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_owed_mark(&self) -> bool {
        self.owes_mark.swap(false, Ordering::Relaxed)
    }

    /// The mark was written, or cleared by the process that named this worker.
    pub(super) fn note_mark(&self, listens: bool) {
        self.times().marked = listens.then(Instant::now);
    }

    fn note_hint(&self) {
        let mut times = self.times();
        times.last_hint = Some(Instant::now());
        times.marked = None;
    }

    fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Relaxed)
    }

    pub(super) fn set_deaf(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    fn set_lives(&self, lives: bool) {
        self.lives.store(lives, Ordering::Relaxed);
    }
}

/// Two descriptors that never become readable, for a worker that polls. It watches both, and a descriptor can be watched
/// only once.
#[derive(Debug)]
pub(super) struct Silence {
    work: OwnedFd,
    orders: OwnedFd,
}

impl Silence {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { work: event()?, orders: event()? })
    }
}

fn event() -> Result<OwnedFd> {
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
