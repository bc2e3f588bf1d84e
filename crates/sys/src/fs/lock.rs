//! A file lock that processes queue up for, with a limit to their patience.
//!
//! The kernel hands a lock to those who sleep for it, which is fair; asking again and again is not. But it knows no time
//! limit, so when the lock is taken a thread sleeps in our stead. It sleeps on when our patience is over, keeps our place
//! if we come again, and lets go of what it gets while nobody waits. There is never more than one: a second one would
//! share the lock of the first, and lose it when the first lets go.

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
    /// A thread sleeps for the lock.
    has_sleeper: bool,
    /// Somebody waits for what it gets.
    is_wanted: bool,
    got: Option<io::Result<()>>,
}

impl PatientLock {
    /// The lock of this file, not taken yet. It goes with the last descriptor of it.
    pub fn new(file: File) -> Self {
        Self { shared: Arc::new(Shared { file, wait: Mutex::default(), changed: Condvar::new() }) }
    }

    pub fn file(&self) -> &File {
        &self.shared.file
    }

    /// Takes the lock for this process alone. `false` when it was not to be had within `patience`.
    pub fn take_within(&self, patience: Duration) -> io::Result<bool> {
        let mut wait = self.shared.wait();
        // A sleeper may have the lock already, and be about to let go of it.
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
    fn a_held_lock_is_waited_for_and_then_given_up() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        assert!(holder.take_within(Duration::ZERO).expect("first"));

        let began = Instant::now();
        assert!(!waiter.take_within(SHORT).expect("second"));
        assert!(began.elapsed() >= SHORT);

        // The abandoned wait must not keep what it gets in the end.
        holder.let_go().expect("unlock");
        assert!(open(&path).take_within(LONG).expect("third"));
    }

    #[test]
    fn a_lock_that_is_let_go_is_handed_over() {
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
    fn who_comes_again_waits_in_the_same_place_and_keeps_what_it_gets() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        for _ in 0..20 {
            assert!(holder.take_within(LONG).expect("it is free"));
            for _ in 0..3 {
                assert!(!waiter.take_within(Duration::from_millis(1)).expect("it is held"));
            }
            // One sleeps for all of them; that of the last round may not be quite gone.
            let began = Instant::now();
            while Arc::strong_count(&waiter.shared) != 2 {
                assert!(began.elapsed() < LONG, "one sleeper");
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
