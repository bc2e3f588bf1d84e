//! The connections to the store: some for reading, so that a slow search delays no other request, and one for writing.
//!
//! They are opened when they are first needed. One that may be broken is closed, and the next request opens another, so
//! the server outlives every condition of its store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::{Outage, Problem};
use ops::home::location::Location;
use ops::home::open::{open_existing, open_existing_within};
use store::{HistoryCache, Store, StoreError, StoreVersion};

/// How many connections were opened.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

const READERS: usize = 4;
const WRITERS: usize = 1;
/// How long a request waits for a lock of the store, and for the connection of others that wait for one.
const PATIENCE: Duration = Duration::from_secs(2);
/// A request waits so many milliseconds for a lock, even if it had to wait for its connection, or a multiple of them, which
/// reads better in a message.
const LOCK_STEP: u64 = 100;
/// How long a request waits for a connection while others get theirs.
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
    history_cache: Arc<HistoryCache>,
}

/// A connection, with a number that no other one of this process has.
#[derive(Debug)]
struct Connection {
    number: u64,
    store: Box<dyn Store>,
}

/// The state of the store as a connection saw it. Those of two connections are never equal, because each counts the changes
/// that it has noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenVersion {
    connection: u64,
    version: StoreVersion,
}

/// The connections of one kind.
#[derive(Debug)]
struct Lane {
    state: Mutex<LaneState>,
    returned: Condvar,
}

#[derive(Debug)]
struct LaneState {
    idle: Vec<Connection>,
    /// How many more may be taken.
    free: usize,
    /// When one last came back from a store that answered.
    served_at: Instant,
    /// What kept the last request from its work. Others would wait for the same.
    outage: Option<Outage>,
}

impl Lane {
    fn new(size: usize) -> Self {
        let state = LaneState { idle: Vec::new(), free: size, served_at: Instant::now(), outage: None };
        Self { state: Mutex::new(state), returned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free place, and says how long its holder may wait for a lock. The place has a connection, unless the
    /// caller has to open one.
    fn enter(&self, arrived: Instant) -> Result<(PooledStore<'_>, Duration), Problem> {
        let mut state = self.lock();
        loop {
            // How long the store has served no request that this one waits for.
            let waited = arrived.max(state.served_at).elapsed();
            if let Some(outage) = state.outage.filter(|_| waited >= PATIENCE) {
                return Err(match outage {
                    Outage::Locked => StoreError::Busy { waited: PATIENCE, holder: None }.into(),
                    Outage::Unavailable => Problem::overloaded("the store does not answer; try again later"),
                });
            }
            let patience = PATIENCE.saturating_sub(waited);
            if state.free > 0 {
                state.free -= 1;
                let taken = PooledStore { lane: self, connection: state.idle.pop(), outage: None };
                return Ok((taken, in_steps(patience)));
            }
            let left = WAIT_LIMIT.saturating_sub(arrived.elapsed());
            if left.is_zero() {
                return Err(Problem::overloaded("all connections to the store are in use; try again later"));
            }
            let wait = if patience.is_zero() { left } else { left.min(patience) };
            let waited = self.returned.wait_timeout(state, wait);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
    }

    fn leave(&self, connection: Option<Connection>, outage: Option<Outage>) {
        let mut state = self.lock();
        state.free += 1;
        state.idle.extend(connection);
        state.outage = outage;
        if outage.is_none() {
            state.served_at = Instant::now();
        }
        drop(state);
        match outage {
            // Requests that have waited long enough learn it now.
            Some(_) => self.returned.notify_all(),
            None => self.returned.notify_one(),
        }
    }
}

/// A time to wait for a lock.
fn in_steps(patience: Duration) -> Duration {
    let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis.div_ceil(LOCK_STEP).max(1).saturating_mul(LOCK_STEP))
}

impl Pool {
    /// For a queue that exists. The pool never creates one: a deleted home must stay deleted.
    pub(crate) fn new(location: Location) -> Self {
        let location = Location { is_named: true, ..location };
        let (readers, writers) = (Lane::new(READERS), Lane::new(WRITERS));
        Self { location, readers, writers, history_cache: Arc::default() }
    }

    /// A connection for a request that arrived at this time.
    pub(crate) fn take(&self, access: Access, arrived: Instant) -> Result<PooledStore<'_>, Problem> {
        let lane = match access {
            Access::Read => &self.readers,
            Access::Write => &self.writers,
        };
        let (mut taken, lock_timeout) = lane.enter(arrived)?;
        let opened = match taken.connection.take() {
            Some(known) => known.store.wait_at_most(lock_timeout).map(|()| known).map_err(Problem::from),
            None => self.connect(lock_timeout),
        };
        match opened {
            Ok(connection) => taken.connection = Some(connection),
            Err(problem) => {
                taken.outage = problem.outage;
                return Err(problem);
            }
        }
        Ok(taken)
    }

    fn connect(&self, lock_timeout: Duration) -> Result<Connection, Problem> {
        let mut store = open_existing_within(&self.location, lock_timeout)?;
        store.share_history_cache(Arc::clone(&self.history_cache));
        Ok(Connection { number: CONNECTIONS.fetch_add(1, Ordering::Relaxed), store })
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
    connection: Option<Connection>,
    outage: Option<Outage>,
}

impl PooledStore<'_> {
    /// Returns the connection after a request that has failed. One that may be broken is closed.
    pub(crate) fn leave_after(mut self, problem: &Problem) {
        self.outage = problem.outage;
        if problem.doubts_store {
            self.connection = None;
        }
    }

    fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a connection is there until it is returned")
    }

    /// The present state of the store.
    pub(crate) fn version(&self) -> Result<SeenVersion, StoreError> {
        let Connection { number, store } = self.connection();
        Ok(SeenVersion { connection: *number, version: store.version()? })
    }

    pub(crate) fn as_ref(&self) -> &dyn Store {
        self.connection().store.as_ref()
    }
}

impl Drop for PooledStore<'_> {
    fn drop(&mut self) {
        let connection = self.connection.take().filter(|_| !std::thread::panicking());
        self.lane.leave(connection, self.outage);
    }
}

#[cfg(test)]
mod tests {
    use ops::home::location::StoreAddress;
    use ops::home::open::open;

    use super::*;

    /// A connection that has noticed fewer changes than another may have the same count for a later state.
    #[test]
    fn the_versions_of_two_connections_are_never_equal() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        let store = StoreAddress::Sqlite(home.join("queue.db"));
        let location = Location { home, store, skipped_home: None, is_named: true };
        drop(open(&location).expect("a new queue"));
        let pool = Pool::new(location);
        let take = || pool.take(Access::Read, Instant::now()).expect("a connection");
        let (one, other) = (take(), take());
        assert_eq!(one.as_ref().version().expect("a version"), other.as_ref().version().expect("a version"));
        let version = |store: &PooledStore<'_>| store.version().expect("a version");
        assert_ne!(version(&one), version(&other));
        assert_eq!(version(&one), version(&one));
        other.as_ref().note("test", "me", "changed").expect("written");
        let (before, after) = (version(&other), version(&one));
        drop((one, other));
        let again = take();
        assert!([before, after].contains(&version(&again)), "a connection that returns keeps its number");
    }
}
