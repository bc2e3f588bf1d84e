//! A worker that cannot start anything, because it cannot write down what it is about to start: what it claims it has to
//! give back. It waits longer each time, so that a full disk is not filled with attempts that came to nothing.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Hindrance {
    noted: Option<Instant>,
    until: Option<Instant>,
    /// How often in a row.
    times: u32,
}

impl Hindrance {
    /// An attempt could not be started. Those of several slots at once count as one.
    pub(super) fn note(&mut self, now: Instant) {
        self.noted = Some(now);
        if !self.holds(now) {
            let pause = FIRST_PAUSE.saturating_mul(1 << self.times.min(16)).min(LONGEST_PAUSE);
            self.until = now.checked_add(pause);
            self.times += 1;
        }
    }

    /// An attempt that was begun at this moment could be started. One that was before the obstacle says nothing of it.
    pub(super) fn clear_by(&mut self, began: Instant) {
        if self.noted.is_some_and(|noted| noted < began) {
            *self = Self::default();
        }
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
        hindrance.clear_by(now);
        hindrance.note(now);
        assert!(!hindrance.holds(now + FIRST_PAUSE), "what was started in between counts");
    }

    #[test]
    fn what_was_started_before_the_obstacle_does_not_end_it() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let mut hindrance = Hindrance::default();
        hindrance.note(began + second);
        hindrance.clear_by(began);
        assert!(hindrance.holds(began + second), "it ran already");
        hindrance.note(began + second * 2);
        hindrance.clear_by(began + second * 2);
        hindrance.clear_by(began + second);
        assert!(hindrance.holds(began + second * 3), "neither was begun after the last obstacle");
        hindrance.clear_by(began + second * 3);
        assert!(!hindrance.holds(began + second * 3));
    }
}
