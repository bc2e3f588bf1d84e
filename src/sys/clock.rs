//! Time: the wall clock, and a clock that neither jumps nor counts sleep.

use std::fmt;

use rustix::time::{ClockId, clock_gettime};

/// Where a store takes its time from; tests put a clock of their own here.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds of UTC since 1970.
    fn wall_millis(&self) -> i64;
    /// Milliseconds since the machine booted, without those it slept. Never goes back.
    fn boot_millis(&self) -> i64;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_millis(&self) -> i64 {
        millis(ClockId::Realtime)
    }

    fn boot_millis(&self) -> i64 {
        millis(ClockId::Monotonic)
    }
}

fn millis(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}
