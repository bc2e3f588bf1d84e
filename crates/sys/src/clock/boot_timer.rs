//! A timer that also counts the time in which the machine was suspended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Its descriptor becomes readable at the time that was set.
#[derive(Debug)]
pub struct BootTimer(OwnedFd);

impl BootTimer {
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Replaces the time that was set before, as [`crate::clock::since_boot_with_sleep`] tells it.
    pub fn set(&self, at: Duration) -> io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would switch the timer off.
        let at = Timespec::try_from(at.max(Duration::from_nanos(1))).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: never, it_value: at };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
