//! The pauses of a caller that checks a condition repeatedly, because nothing wakes it when the condition changes.

use std::time::{Duration, Instant};

/// Each pause is longer than the one before by this fraction of it. The pause is then about that fraction of the time
/// already waited, so a short wait ends early and a long one costs few checks.
const GROWTH_DIVISOR: u32 = 10;

/// The pause grows from the shortest to the longest while nothing happens, and ends at the deadline.
#[derive(Clone, Debug)]
pub struct Poll {
    shortest: Duration,
    longest: Duration,
    next: Duration,
    deadline: Option<Instant>,
}

impl Poll {
    pub fn every(interval: Duration) -> Self {
        Self::growing(interval, interval)
    }

    pub fn growing(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, next: shortest, deadline: None }
    }

    #[must_use]
    pub fn until(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// From now on. A limit that is out of range is none.
    #[must_use]
    pub fn within(self, limit: impl Into<Option<Duration>>) -> Self {
        self.until(limit.into().and_then(|limit| Instant::now().checked_add(limit)))
    }

    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Something happened: the next pause is the shortest.
    pub fn restart(&mut self) {
        self.next = self.shortest;
    }

    /// How long to pause now.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_add(pause / GROWTH_DIVISOR).min(self.longest);
        self.deadline.map_or(pause, |deadline| pause.min(deadline.saturating_duration_since(Instant::now())))
    }

    /// Sleeps until the next check; `false` if the deadline has passed.
    pub fn sleep(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        std::thread::sleep(self.pause());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_grow_until_something_happens() {
        let mut poll = Poll::growing(100 * MILLISECOND, 125 * MILLISECOND);
        let pauses = [100, 110, 121, 125, 125].map(|count| count * MILLISECOND);
        assert_eq!([(); 5].map(|()| poll.pause()), pauses);
        poll.restart();
        assert_eq!(poll.pause(), 100 * MILLISECOND);
        assert!(!poll.is_over());
    }

    #[test]
    fn the_last_pause_ends_at_the_deadline() {
        let mut poll = Poll::every(Duration::MAX).within(MILLISECOND);
        assert!(poll.sleep());
        assert!(!poll.sleep());
        assert_eq!(poll.pause(), Duration::ZERO);
    }
}
