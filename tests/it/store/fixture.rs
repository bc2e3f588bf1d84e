//! A store with a clock that tests turn, and short ways to say what happens to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use queuectl::store::Store;
use queuectl::store::sqlite::SqliteStore;
use queuectl::sys::clock::Clock;

/// A clock that only tests move.
#[derive(Debug)]
pub struct TestClock {
    wall: AtomicI64,
    boot: AtomicI64,
}

impl Default for TestClock {
    fn default() -> Self {
        Self { wall: AtomicI64::new(1_800_000_000_000), boot: AtomicI64::new(5_000_000) }
    }
}

impl TestClock {
    /// Time goes by.
    pub fn advance(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).expect("a short time");
        self.wall.fetch_add(millis, Ordering::SeqCst);
        self.boot.fetch_add(millis, Ordering::SeqCst);
    }

    /// Somebody sets the wall clock.
    pub fn jump(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall_millis(&self) -> i64 {
        self.wall.load(Ordering::SeqCst)
    }

    fn boot_millis(&self) -> i64 {
        self.boot.load(Ordering::SeqCst)
    }
}

pub struct Fixture {
    pub store: Box<dyn Store>,
    pub clock: Arc<TestClock>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clock = Arc::new(TestClock::default());
        let store = SqliteStore::open(&folder.path().join("queue.db"), clock.clone()).expect("a new store");
        Self { store: Box::new(store), clock, _folder: folder }
    }
}
