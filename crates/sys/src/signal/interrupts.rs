//! Signals that a person sends, taken when it suits instead of ending the process on the spot.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, kill_process};

use super::is_ignored;
use super::set::SignalSet;

/// While this lives the signals wait to be taken, in this thread and those that it starts.
#[derive(Debug)]
pub struct Interrupts {
    waiting: OwnedFd,
    caught: SignalSet,
}

impl Interrupts {
    /// Catches these signals, but for those that whoever started this process wanted ignored: a `nohup` holds.
    pub fn catch(signals: &[Signal]) -> io::Result<Self> {
        let heeded = signals.iter().copied().filter(|signal| !is_ignored(signal.as_raw()));
        let caught = SignalSet::of(heeded);
        caught.block()?;
        Ok(Self { waiting: caught.open()?, caught })
    }

    /// The next signal that came, if one did.
    pub fn take(&self) -> Option<Signal> {
        let mut record = [0; size_of::<libc::signalfd_siginfo>()];
        rustix::io::read(&self.waiting, &mut record).ok()?;
        // A record begins with the signal's number.
        let number = u32::from_ne_bytes(record.first_chunk().copied()?);
        Signal::from_named_raw(number.try_into().ok()?)
    }

    /// Sleeps for so long, or until a signal comes.
    pub fn sleep(&self, length: Duration) -> Option<Signal> {
        let mut descriptors = [PollFd::new(self, PollFlags::IN)];
        // However the sleep ends, what came is looked at.
        let _ = poll(&mut descriptors, Some(&timespec(length)));
        self.take()
    }

    /// Ends this process as the signal would have, had it not been caught: a shell tells that from an exit code.
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

/// A length of time as `poll` takes it; one beyond its range is the longest that there is.
pub fn timespec(length: Duration) -> Timespec {
    let tv_sec = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: length.subsec_nanos().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Signals of one thread only, so that tests beside this one do not notice.
    #[expect(unsafe_code, reason = "there is no safe wrapper for pthread_kill(3)")]
    fn send_to_this_thread(signal: Signal) {
        // SAFETY: this thread is alive.
        unsafe { libc::pthread_kill(libc::pthread_self(), signal.as_raw()) };
    }

    #[test]
    fn a_signal_waits_until_it_is_taken() {
        let interrupts = Interrupts::catch(&[Signal::WINCH, Signal::URG]).expect("they are caught");
        assert_eq!(interrupts.take(), None);
        send_to_this_thread(Signal::WINCH);
        assert_eq!(interrupts.take(), Some(Signal::WINCH));
        assert_eq!(interrupts.take(), None);
    }

    #[test]
    fn a_sleep_ends_with_a_signal_or_with_its_time() {
        let interrupts = Interrupts::catch(&[Signal::WINCH]).expect("it is caught");
        let (began, short) = (Instant::now(), Duration::from_millis(20));
        assert_eq!(interrupts.sleep(short), None);
        assert!(began.elapsed() >= short);
        send_to_this_thread(Signal::WINCH);
        assert_eq!(interrupts.sleep(Duration::MAX), Some(Signal::WINCH));
    }
}
