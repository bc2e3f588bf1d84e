//! When the supervisor checks for hung workers.

use std::time::{Duration, Instant};

/// When to check for hung workers, and whether the supervisor may judge them: it must itself have been awake, and have
/// reached the store, for a whole lease.
#[derive(Debug)]
pub(crate) struct Watchdog {
    since: Instant,
    last: Instant,
    next: Instant,
}

impl Watchdog {
    /// The shortest and the longest pause between two checks.
    const MIN_INTERVAL: Duration = Duration::from_millis(250);
    const MAX_INTERVAL: Duration = Duration::from_secs(5);

    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, last: now, next: now + Self::MIN_INTERVAL }
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Notes this check, and returns whether its result counts.
    pub(crate) fn may_judge(&mut self, now: Instant, lease: Duration) -> bool {
        let pause = (lease / 6).clamp(Self::MIN_INTERVAL, Self::MAX_INTERVAL);
        if now.duration_since(self.last) > pause * 2 {
            self.since = now;
        }
        self.last = now;
        self.next = now + pause;
        now.duration_since(self.since) >= lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    #[test]
    fn a_supervisor_that_was_asleep_judges_no_worker() {
        let began = Instant::now();
        let mut watchdog = Watchdog::new(began);
        let mut now = began;
        let mut look_for = |watchdog: &mut Watchdog, seconds: u64| {
            let mut may_judge = false;
            for _ in 0..seconds / 5 {
                now += Duration::from_secs(5);
                may_judge = watchdog.may_judge(now, LEASE);
            }
            may_judge
        };
        assert!(!look_for(&mut watchdog, 25), "not for a whole lease yet");
        assert!(look_for(&mut watchdog, 5));
        let later = began + Duration::from_secs(600);
        assert!(!watchdog.may_judge(later, LEASE), "the machine was suspended in between");
        assert!(!watchdog.may_judge(later + Duration::from_secs(5), LEASE));
    }
}
