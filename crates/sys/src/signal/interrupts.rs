//! Signals from a user, handled when the program is ready for them instead of ending it immediately.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use super::is_ignored;
use super::set::SignalSet;

/// While this value lives, the signals are queued in this thread and in threads that it starts.
#[derive(Debug)]
pub struct Interrupts {
    waiting: OwnedFd,
    caught: SignalSet,
}

impl Interrupts {
    /// Catches these signals, except those that the parent process has set to be ignored, as `nohup` does.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        let numbers = signals.iter().map(|signal| signal.as_raw());
        let caught = SignalSet::of(numbers.filter(|number| !is_ignored(*number)));
        caught.block()?;
        Ok(Self { waiting: caught.open()?, caught })
    }

    /// The next signal, if one is queued.
    pub fn take(&self) -> Option<Signal> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.waiting, &mut record).ok()?;
        // A record begins with the signal's number.
        let number = u32::from_ne_bytes(record.first_chunk().copied()?);
        Signal::from_named_raw(number.try_into().ok()?)
    }

    /// Sleeps for this time, or until a signal arrives.
    pub fn sleep(&self, length: Duration) -> Option<Signal> {
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        // However the sleep ends, check for a signal.
        let _ = poll(&mut descriptors, Some(&timespec(length)));
        self.take()
    }

    /// Ends this process with the signal, as if it had not been caught: a shell distinguishes that from an exit code.
    pub fn end_by(self, signal: Signal) -> ! {
        drop(self);
        let _ = kill_process(getpid(), signal);
        std::process::exit(128 + signal.as_raw())
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let _ = self.caught.unblock();
    }
}

/// Converts a duration for `poll`; one that is out of range becomes the maximum.
pub fn timespec(length: Duration) -> Timespec {
    let tv_sec = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: length.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Sends a signal to this thread only, so that concurrent tests are not affected.
    #[expect(unsafe_code, reason = "there is no safe wrapper for pthread_kill(3)")]
    fn send_to_this_thread(signal: Signal) {
        // SAFETY: the calling thread exists while it makes this call.
        unsafe { libc::pthread_kill(libc::pthread_self(), signal.as_raw()) };
    }

    #[test]
    fn a_signal_waits_until_it_is_taken() {
        let interrupts = Interrupts::catch(&[Signal::WINCH, Signal::URG]).expect("caught");
        assert_eq!(interrupts.take(), None);
        send_to_this_thread(Signal::WINCH);
        assert_eq!(interrupts.take(), Some(Signal::WINCH));
        assert_eq!(interrupts.take(), None);
    }

    #[test]
    fn a_sleep_ends_at_a_signal_or_after_its_time() {
        let interrupts = Interrupts::catch(&[Signal::WINCH]).expect("caught");
        let (began, short) = (Instant::now(), Duration::from_millis(20));
        assert_eq!(interrupts.sleep(short), None);
        assert!(began.elapsed() >= short);
        send_to_this_thread(Signal::WINCH);
        assert_eq!(interrupts.sleep(Duration::MAX), Some(Signal::WINCH));
    }
}
