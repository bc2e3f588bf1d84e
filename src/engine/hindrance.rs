//! A worker that cannot start anything, because it cannot write down what it is about to start: what it claims it has to
//! give back. It waits longer each time, so that a full disk is not filled with attempts that came to nothing.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Hindrance {
    until: Option<Instant>,
    /// How often in a row.
    times: u32,
}

impl Hindrance {
    /// An attempt could not be started. Those of several slots at once count as one.
    pub(super) fn note(&mut self, now: Instant) {
        if !self.holds(now) {
            let pause = FIRST_PAUSE.saturating_mul(1 << self.times.min(16)).min(LONGEST_PAUSE);
            self.until = now.checked_add(pause);
            self.times += 1;
        }
    }

    /// An attempt was started.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn holds(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_longer_each_time_up_to_a_limit() {
        let mut now = Instant::now();
        let mut hindrance = Hindrance::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            hindrance.note(now);
            hindrance.note(now);
            let began = now;
            while hindrance.holds(now) {
                now += FIRST_PAUSE;
            }
            pauses.push((now - began).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15], "two at once are one");
        hindrance.clear();
        hindrance.note(now);
        assert!(!hindrance.holds(now + FIRST_PAUSE), "what was started in between counts");
    }
}
