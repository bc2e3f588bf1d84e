//! Clocks: the wall clock, and a clock that neither jumps nor counts suspended time.

pub mod boot_timer;

use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock of a store; tests use their own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970 in UTC.
    fn wall_millis(&self) -> i64;
    /// Milliseconds since the machine booted, without the time it was suspended. Never decreases.
    fn awake_millis(&self) -> i64;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn wall_millis(&self) -> i64 {
        millis(ClockId::Realtime)
    }

    fn awake_millis(&self) -> i64 {
        millis(ClockId::Monotonic)
    }
}

fn millis(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// The time since the machine booted, without the time it was suspended; comparable between processes.
pub fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// Milliseconds since the machine booted, including the time it was suspended.
pub fn millis_since_boot() -> i64 {
    millis(ClockId::Boottime)
}

/// The time since the machine booted, including the time it was suspended.
pub fn since_boot_with_sleep() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// The unit of the start time in `/proc/PID/stat`.
const TICKS_PER_SECOND: i64 = 100;

pub fn ticks(span: Duration) -> u64 {
    let per_second = u128::from(TICKS_PER_SECOND.cast_unsigned());
    u64::try_from(span.as_millis() * per_second / 1000).unwrap_or(u64::MAX)
}

/// Clock ticks since boot, including the time the machine was suspended, as in `/proc/PID/stat`.
pub fn boot_ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    (now.tv_sec * TICKS_PER_SECOND + now.tv_nsec / (1_000_000_000 / TICKS_PER_SECOND)).cast_unsigned()
}
