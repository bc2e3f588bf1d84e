//! The connections to the store: some for reading, so that a slow search delays no other request, and one for writing.
//!
//! They are opened when they are first needed. One that may be broken is closed, and the next request opens another, so
//! the server outlives every condition of its store.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;
use ops::home::location::Location;
use ops::home::open::open_existing;
use store::Store;

const READERS: usize = 4;
const WRITERS: usize = 1;
/// How long a request waits for a connection.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

#[derive(Debug)]
pub(crate) struct Pool {
    location: Location,
    readers: Lane,
    writers: Lane,
}

/// The connections of one kind.
#[derive(Debug)]
struct Lane {
    state: Mutex<LaneState>,
    returned: Condvar,
}

#[derive(Debug)]
struct LaneState {
    idle: Vec<Box<dyn Store>>,
    /// How many more may be taken.
    free: usize,
}

impl Lane {
    fn new(size: usize) -> Self {
        let state = LaneState { idle: Vec::new(), free: size };
        Self { state: Mutex::new(state), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free place. It has a connection, unless the caller has to open one.
    fn enter(&self) -> Option<PooledStore<'_>> {
        let end = Instant::now() + WAIT_LIMIT;
        let mut state = self.lock();
        while state.free == 0 {
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.returned.wait_timeout(state, left);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        state.free -= 1;
        Some(PooledStore { lane: self, store: state.idle.pop() })
    }

    fn leave(&self, store: Option<Box<dyn Store>>) {
        let mut state = self.lock();
        state.free += 1;
        state.idle.extend(store);
        drop(state);
        self.returned.notify_one();
    }
}

impl Pool {
    /// For a queue that exists. The pool never creates one: a deleted home must stay deleted.
    pub(crate) fn new(location: Location) -> Self {
        let location = Location { is_named: true, ..location };
        Self { location, readers: Lane::new(READERS), writers: Lane::new(WRITERS) }
    }

    pub(crate) fn take(&self, access: Access) -> Result<PooledStore<'_>, Problem> {
        let lane = match access {
            Access::Read => &self.readers,
            Access::Write => &self.writers,
        };
        let busy = || Problem::overloaded("all connections to the store are in use; try again later");
        let mut taken = lane.enter().ok_or_else(busy)?;
        if taken.store.is_none() {
            taken.store = Some(open_existing(&self.location)?);
        }
        Ok(taken)
    }

    /// A connection of its own, for a reader that keeps it for a long time.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, Problem> {
        Ok(open_existing(&self.location)?)
    }
}

/// A connection that returns to the pool.
#[derive(Debug)]
pub(crate) struct PooledStore<'a> {
    lane: &'a Lane,
    store: Option<Box<dyn Store>>,
}

impl PooledStore<'_> {
    /// Closes the connection.
    pub(crate) fn discard(mut self) {
        self.store = None;
    }

    pub(crate) fn as_ref(&self) -> &dyn Store {
        self.store.as_deref().expect("a connection is there until it is discarded")
    }
}

impl Drop for PooledStore<'_> {
    fn drop(&mut self) {
        let store = self.store.take().filter(|_| !std::thread::panicking());
        self.lane.leave(store);
    }
}
