//! A file lock that processes queue up for, with a limit to how long each waits.
//!
//! The kernel wakes the processes that sleep for a lock, which is fair; polling is not. But `flock` has no time limit, so
//! a timer interrupts the sleeping thread with a signal when its time is up.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::poll::Poll;
use crate::signal::set::SignalSet;

/// How often a signal is repeated: the first one may come just before the thread falls asleep, and interrupt nothing.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(1);

/// How often a process that cannot have a timer tries to take the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct TimedLock {
    file: File,
}

impl TimedLock {
    /// The lock of this file, not taken yet. The kernel frees it when the last descriptor of the description is closed.
    pub fn new(file: File) -> Self {
        Self { file }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes the lock for this process alone. `false` if another process held it for all of `timeout`.
    pub fn take_within(&self, timeout: Duration) -> io::Result<bool> {
        let deadline = Instant::now().checked_add(timeout);
        if self.try_take()? {
            return Ok(true);
        }
        if timeout.is_zero() {
            return Ok(false);
        }
        let _alarm = match Alarm::set(timeout) {
            // All timers that the user may have (`RLIMIT_SIGPENDING`) are in use.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.poll_until(deadline),
            alarm => alarm?,
        };
        loop {
            match flock(&self.file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                    return Ok(false);
                }
                // Another signal.
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn release(&self) -> io::Result<()> {
        Ok(flock(&self.file, FlockOperation::Unlock)?)
    }

    /// Waits without a place in the kernel's queue: unfair to this process, but better than no wait.
    fn poll_until(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let mut poll = Poll::every(LOCK_POLL_INTERVAL).until(deadline);
        while !self.try_take()? {
            if !poll.sleep() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn try_take(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// While this lives, system calls of the thread that set it are interrupted from a moment on.
struct Alarm {
    timer: libc::timer_t,
}

impl Alarm {
    #[expect(unsafe_code, reason = "there is no safe wrapper for timer_create(2)")]
    fn set(after: Duration) -> io::Result<Self> {
        let signal = interrupting_signal()?;
        // The caller of this program may have started it with the signal blocked.
        SignalSet::of([signal]).unblock()?;
        let mut timer = MaybeUninit::uninit();
        // SAFETY: all bytes zero are a valid `sigevent`. Both pointers are valid for the whole call, which writes the
        // timer where it succeeds. The thread is the calling one, so it exists.
        let created = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr())
        };
        if created == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `timer_create` succeeded, so it wrote the timer.
        let alarm = Self { timer: unsafe { timer.assume_init() } };
        let schedule = libc::itimerspec { it_value: timespec(after), it_interval: timespec(SIGNAL_INTERVAL) };
        // SAFETY: the timer exists until `alarm` is dropped; `schedule` is only read, and the old one is not asked for.
        match unsafe { libc::timer_settime(alarm.timer, 0, &raw const schedule, std::ptr::null_mut()) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(alarm),
        }
    }
}

impl Drop for Alarm {
    #[expect(unsafe_code, reason = "there is no safe wrapper for timer_delete(2)")]
    fn drop(&mut self) {
        // SAFETY: the timer was created by `set` and is deleted only here.
        unsafe { libc::timer_delete(self.timer) };
    }
}

fn timespec(length: Duration) -> libc::timespec {
    let tv_sec = libc::time_t::try_from(length.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: length.subsec_nanos().into() }
}

/// A signal that interrupts a system call and does nothing else. A real-time signal, because callers of this program
/// have uses for the others: an `alarm(2)` that was set before exec still ends it.
#[expect(unsafe_code, reason = "there is no safe wrapper for sigaction(2)")]
fn interrupting_signal() -> io::Result<libc::c_int> {
    static HANDLED: OnceLock<libc::c_int> = OnceLock::new();
    if let Some(signal) = HANDLED.get() {
        return Ok(*signal);
    }
    let signal = libc::SIGRTMIN();
    // SAFETY: all bytes zero are a valid `sigaction`: an empty mask and no flags. Without SA_RESTART the kernel does
    // not resume the interrupted call. The handler touches nothing, so it may run at any time in any thread.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(*HANDLED.get_or_init(|| signal))
}

extern "C" fn do_nothing(_: libc::c_int) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Instant;

    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(10);

    fn open(path: &Path) -> TimedLock {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        TimedLock::new(file.expect("open"))
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

        // A wait that timed out must not take the lock later.
        holder.release().expect("unlock");
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
            holder.release().expect("unlock");
            assert!(waiter.join().expect("join").expect("second"));
        });
    }

    #[test]
    fn an_abandoned_wait_leaves_no_claim_to_the_lock() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let (holder, waiter) = (open(&path), open(&path));
        for _ in 0..20 {
            assert!(holder.take_within(LONG).expect("it is free"));
            for _ in 0..3 {
                assert!(!waiter.take_within(Duration::from_millis(1)).expect("it is held"));
            }
            holder.release().expect("unlock");
            // At once: nothing is left that could have got it first.
            assert!(open(&path).take_within(Duration::ZERO).expect("it is free"));
        }
    }

    #[test]
    fn every_waiting_thread_is_interrupted_in_its_own_time() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let holder = open(&path);
        assert!(holder.take_within(Duration::ZERO).expect("first"));
        std::thread::scope(|scope| {
            let wait = |timeout| {
                let path = &path;
                scope.spawn(move || {
                    let began = Instant::now();
                    (open(path).take_within(timeout).expect("a wait"), began.elapsed())
                })
            };
            let (short, long) = (wait(SHORT), wait(LONG));
            let (taken, waited) = short.join().expect("join");
            assert!(!taken && waited >= SHORT, "{waited:?}");
            assert!(!long.is_finished());
            holder.release().expect("unlock");
            let (taken, waited) = long.join().expect("join");
            assert!(taken && waited < LONG, "{waited:?}");
        });
    }

    /// The mask is inherited from the process that started this one, so the signal may be blocked.
    #[test]
    fn a_wait_ends_where_the_signal_was_blocked() {
        let directory = tempfile::tempdir().expect("tempdir");
        let path = directory.path().join("gate");
        let holder = open(&path);
        assert!(holder.take_within(Duration::ZERO).expect("first"));
        SignalSet::all().block().expect("block");
        assert!(!open(&path).take_within(SHORT).expect("second"));
    }
}
