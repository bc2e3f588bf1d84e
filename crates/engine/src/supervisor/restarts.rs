//! How often the workers of one pool slot have crashed, and when to start the next one.
//!
//! A worker that had started commands was most likely killed by one of them. The job's `crash_limit` deals with that,
//! so such a crash never makes the supervisor give up: other jobs can still run. Only workers that crash before they
//! have started any command count, because the next one is unlikely to do better.

use std::time::Duration;

/// How many workers in a row may crash without having started a command.
const MAX_IDLE_CRASHES: u32 = 20;
/// The same for a pool that was never up.
const MAX_FALSE_STARTS: u32 = 3;
/// The pause after the first crash; it doubles with each further crash, up to a limit.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(100);
const MAX_RESTART_DELAY: Duration = Duration::from_secs(15);
/// The limit when a job caused the crash: the next worker can run the other jobs.
const MAX_RESTART_DELAY_AFTER_WORK: Duration = Duration::from_millis(500);

/// Whether a worker that crashed had started any command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Idle,
    AfterWork,
}

/// The consecutive crashes of one pool slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Restarts {
    crashes: u32,
    /// The most recent consecutive crashes without a started command.
    idle: u32,
}

impl Restarts {
    pub(crate) fn after(self, crash: Crash) -> Self {
        let idle = match crash {
            Crash::Idle => self.idle.saturating_add(1),
            Crash::AfterWork => 0,
        };
        Self { crashes: self.crashes.saturating_add(1), idle }
    }

    /// The number of consecutive crashes without a started command, if it exceeds the limit.
    pub(crate) fn too_many(self, was_up: bool) -> Option<u32> {
        let most = if was_up { MAX_IDLE_CRASHES } else { MAX_FALSE_STARTS };
        (self.idle >= most).then_some(self.idle)
    }

    /// How long to wait before the next worker is started.
    pub(crate) fn pause(self) -> Duration {
        let longest = if self.idle > 0 { MAX_RESTART_DELAY } else { MAX_RESTART_DELAY_AFTER_WORK };
        FIRST_RESTART_DELAY.saturating_mul(1 << self.crashes.saturating_sub(1).min(16)).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(crashes: impl IntoIterator<Item = Crash>) -> Restarts {
        crashes.into_iter().fold(Restarts::default(), Restarts::after)
    }

    #[test]
    fn workers_that_crash_before_any_command_are_given_up() {
        let idle = |count| after(std::iter::repeat_n(Crash::Idle, count));
        assert_eq!(idle(2).too_many(false), None);
        assert_eq!(idle(3).too_many(false), Some(3), "they were never up");
        assert_eq!(idle(19).too_many(true), None);
        assert_eq!(idle(20).too_many(true), Some(20));
    }

    #[test]
    fn fault_41_workers_that_were_killed_by_their_jobs_are_never_given_up() {
        let killed = after(std::iter::repeat_n(Crash::AfterWork, 1_000));
        assert_eq!((killed.too_many(true), killed.too_many(false)), (None, None));
        let mixed = after([Crash::Idle; 19].into_iter().chain([Crash::AfterWork, Crash::Idle]));
        assert_eq!(mixed.too_many(true), None, "a crash after work resets the count");
    }

    #[test]
    fn the_pause_grows_to_a_limit_which_is_short_when_jobs_cause_the_crashes() {
        let millis = |crash, count| after(std::iter::repeat_n(crash, count)).pause().as_millis();
        assert_eq!(
            [1, 2, 5, 9, 50].map(|count| millis(Crash::Idle, count)),
            [100, 200, 1_600, 15_000, 15_000]
        );
        assert_eq!([1, 2, 3, 4, 50].map(|count| millis(Crash::AfterWork, count)), [100, 200, 400, 500, 500]);
    }
}
