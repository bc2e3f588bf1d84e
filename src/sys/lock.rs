//! A file lock that processes queue up for, with a limit to their patience.

use std::fs::File;
use std::io;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// Takes the exclusive lock of `file`. `false` when it was not to be had within `patience`.
///
/// The kernel hands a lock to those who sleep for it, which is fair; asking again and again is not. But it knows no
/// time limit, so when the lock is taken a thread sleeps in our stead, and lets go of what it gets too late.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error.into()),
    }
    let (sender, receiver) = mpsc::sync_channel(0);
    let waiting = file.try_clone()?;
    std::thread::Builder::new().spawn(move || {
        let taken = lock_uninterrupted(&waiting);
        let locked = taken.is_ok();
        if sender.send(taken).is_err() && locked {
            let _ = unlock(&waiting);
        }
    })?;
    match receiver.recv_timeout(patience) {
        Ok(taken) => taken.map(|()| true),
        Err(_) => Ok(false),
    }
}

pub fn unlock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}

fn lock_uninterrupted(file: &File) -> io::Result<()> {
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn open(path: &std::path::Path) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(path).expect("open")
    }

    #[test]
    fn a_held_lock_is_waited_for_and_then_given_up() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        assert!(lock_within(&holder, Duration::ZERO).expect("first"));

        let patience = Duration::from_millis(30);
        let began = Instant::now();
        assert!(!lock_within(&waiter, patience).expect("second"));
        assert!(began.elapsed() >= patience);

        // The abandoned wait must not keep what it gets in the end.
        unlock(&holder).expect("unlock");
        assert!(lock_within(&open(&path), Duration::from_secs(10)).expect("third"));
    }

    #[test]
    fn a_lock_that_is_let_go_is_handed_over() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let holder = open(&path);
        assert!(lock_within(&holder, Duration::ZERO).expect("first"));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock_within(&open(&path), Duration::from_secs(10)));
            unlock(&holder).expect("unlock");
            assert!(waiter.join().expect("join").expect("second"));
        });
    }
}
