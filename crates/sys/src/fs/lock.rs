//! A file lock that processes queue up for, with a time limit.
//!
//! The kernel hands a lock to the processes that block on it in order, which is fair; polling is not. But flock(2) has no
//! time limit, so if the lock is held, a thread blocks on it for the caller. When the caller's time is over, the thread
//! continues to block and so keeps the position in the queue for the caller's next attempt; a lock that it gets while no
//! caller waits it releases. There is never more than one such thread: a second one would share the lock of the first, and
//! lose it when the first releases it.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

#[derive(Debug)]
pub struct PatientLock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: File,
    wait: Mutex<Wait>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wait {
    /// A thread blocks on the lock.
    has_sleeper: bool,
    /// A caller waits for the result.
    is_wanted: bool,
    got: Option<io::Result<()>>,
}

impl PatientLock {
    /// The lock of this file, not taken yet. The kernel releases it with the last descriptor of the file.
    pub fn new(file: File) -> Self {
        Self { shared: Arc::new(Shared { file, wait: Mutex::default(), changed: Condvar::new() }) }
    }

    pub fn file(&self) -> &File {
        &self.shared.file
    }

    /// Takes the lock exclusively. `false` if it was not available within `patience`.
    pub fn take_within(&self, patience: Duration) -> io::Result<bool> {
        let mut wait = self.shared.wait();
        // The thread may already have the lock and be about to release it.
        if !wait.has_sleeper {
            if self.shared.try_take()? {
                return Ok(true);
            }
            let shared = Arc::clone(&self.shared);
            std::thread::Builder::new().spawn(move || shared.sleep())?;
            wait.has_sleeper = true;
        }
        wait.is_wanted = true;
        let waited = self.shared.changed.wait_timeout_while(wait, patience, |wait| wait.got.is_none());
        let (mut wait, _) = waited.unwrap_or_else(PoisonError::into_inner);
        wait.is_wanted = false;
        wait.got.take().transpose().map(|got| got.is_some())
    }

    pub fn let_go(&self) -> io::Result<()> {
        self.shared.let_go()
    }
}

impl Shared {
    fn wait(&self) -> MutexGuard<'_, Wait> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_take(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn sleep(&self) {
        let taken = self.take_uninterrupted();
        let mut wait = self.wait();
        wait.has_sleeper = false;
        if wait.is_wanted {
            wait.got = Some(taken);
            self.changed.notify_one();
        } else if taken.is_ok() {
            let _ = self.let_go();
        }
    }

    fn take_uninterrupted(&self) -> io::Result<()> {
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    fn let_go(&self) -> io::Result<()> {
        Ok(flock(&self.file, FlockOperation::Unlock)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Instant;

    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(10);

    fn open(path: &Path) -> PatientLock {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        PatientLock::new(file.expect("open"))
    }

    #[test]
    fn waiting_for_a_held_lock_times_out() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        assert!(holder.take_within(Duration::ZERO).expect("first"));

        let began = Instant::now();
        assert!(!waiter.take_within(SHORT).expect("second"));
        assert!(began.elapsed() >= SHORT);

        // The abandoned wait must release the lock that it gets in the end.
        holder.let_go().expect("unlock");
        assert!(open(&path).take_within(LONG).expect("third"));
    }

    #[test]
    fn a_released_lock_is_handed_over() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let holder = open(&path);
        assert!(holder.take_within(Duration::ZERO).expect("first"));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| open(&path).take_within(LONG));
            holder.let_go().expect("unlock");
            assert!(waiter.join().expect("join").expect("second"));
        });
    }

    #[test]
    fn a_repeated_wait_keeps_its_position_and_the_lock() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        for _ in 0..20 {
            assert!(holder.take_within(LONG).expect("it is free"));
            for _ in 0..3 {
                assert!(!waiter.take_within(Duration::from_millis(1)).expect("it is held"));
            }
            // One thread waits for all of them; that of the previous round may still be ending.
            let began = Instant::now();
            while Arc::strong_count(&waiter.shared) != 2 {
                assert!(began.elapsed() < LONG, "only one thread waits");
                std::thread::yield_now();
            }
            std::thread::scope(|scope| {
                let again = scope.spawn(|| waiter.take_within(LONG));
                holder.let_go().expect("unlock");
                assert!(again.join().expect("join").expect("it is free"));
            });
            assert!(!open(&path).take_within(Duration::from_millis(1)).expect("it is held"));
            waiter.let_go().expect("unlock");
        }
    }
}
