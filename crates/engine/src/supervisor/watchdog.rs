//! When the supervisor checks for hung workers.

use std::time::{Duration, Instant};

/// When to check for hung workers, and whether the supervisor may judge them: it must itself have been awake, and have
/// reached the store, for a whole lease.
#[derive(Debug)]
pub(crate) struct Watchdog {
    since: Instant,
    last: Instant,
    next: Instant,
    /// The lease at the last check.
    lease: Option<Duration>,
    /// Whether other machines take over the jobs of a worker that is silent, without asking its supervisor.
    spans_machines: bool,
}

impl Watchdog {
    /// The shortest and the longest pause between two checks.
    const MIN_INTERVAL: Duration = Duration::from_millis(250);
    const MAX_INTERVAL: Duration = Duration::from_secs(5);
    /// The pause as a part of the lease, and the same where other machines take jobs over.
    const CHECKS_PER_LEASE: u32 = 6;
    const CHECKS_PER_SHARED_LEASE: u32 = 12;

    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, last: now, next: now + Self::MIN_INTERVAL, lease: None, spans_machines: false }
    }

    /// The lease at the last check, if its workers are surely not hung: they have touched their lock files lately. A worker
    /// touches its file more often than that, so the store is asked only about one that seems to hang.
    pub(crate) fn unless_quiet(&self, was_touched_within: impl Fn(Duration) -> bool) -> Option<Duration> {
        self.lease.filter(|lease| was_touched_within(Self::quiet_limit(*lease)))
    }

    /// How long a worker may leave its lock file alone. Where other machines take jobs over, one that is quiet for longer
    /// must be dead before they do: a heartbeat, which is a third of the lease at most, may be older than the last touch, and
    /// the next check is a twelfth of the lease away.
    pub(crate) fn quiet_limit(lease: Duration) -> Duration {
        lease / 2
    }

    pub(crate) fn lease(&self) -> Option<Duration> {
        self.lease
    }

    pub(crate) fn set_spans_machines(&mut self, spans_machines: bool) {
        self.spans_machines = spans_machines;
    }

    pub(crate) fn spans_machines(&self) -> bool {
        self.spans_machines
    }

    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Notes this check, and returns whether its result counts.
    pub(crate) fn may_judge(&mut self, now: Instant, lease: Duration) -> bool {
        let checks = if self.spans_machines { Self::CHECKS_PER_SHARED_LEASE } else { Self::CHECKS_PER_LEASE };
        let pause = (lease / checks).clamp(Self::MIN_INTERVAL, Self::MAX_INTERVAL);
        if now.duration_since(self.last) > pause * 2 {
            self.since = now;
        }
        self.last = now;
        self.next = now + pause;
        self.lease = Some(lease);
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

    #[test]
    fn only_a_quiet_worker_is_a_reason_to_ask_the_store() {
        let began = Instant::now();
        let mut watchdog = Watchdog::new(began);
        assert_eq!(watchdog.unless_quiet(|_| true), None, "the lease is not known yet");
        watchdog.may_judge(began, LEASE);
        let touched = |ago: u64| move |span: Duration| Duration::from_secs(ago) < span;
        assert_eq!(watchdog.unless_quiet(touched(14)), Some(LEASE));
        assert_eq!(watchdog.unless_quiet(touched(15)), None);
    }
}
