//! A worker that cannot start anything, because it cannot write down what it is about to start, or has no descriptors or
//! processes left: what it claims it has to give back. It waits longer each time, so that a full disk is not filled with
//! attempts that came to nothing.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How long after a pause it takes to know whether it helped.
const LASTS: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct SpawnBackoff {
    pause: Option<Pause>,
    /// When the one before it was over.
    last_end: Option<Instant>,
    /// How often in a row.
    times: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    until: Instant,
    /// When the last attempt could not be started.
    noted: Instant,
}

impl SpawnBackoff {
    /// An attempt could not be started. Those of several slots at once count as one.
    pub(crate) fn note(&mut self, now: Instant) {
        match &mut self.pause {
            Some(pause) if now < pause.until => pause.noted = now,
            before => {
                self.last_end = before.map(|pause| pause.until);
                let length = FIRST_PAUSE.saturating_mul(1 << self.times.min(16)).min(LONGEST_PAUSE);
                *before = Some(Pause { since: now, until: now + length, noted: now });
                self.times += 1;
            }
        }
    }

    /// An attempt that was begun at this moment could be started. One from before the obstacle says nothing of it. But
    /// where one could be started since the last pause, some can and some cannot, and there is no need to wait longer each
    /// time.
    pub(crate) fn clear_by(&mut self, began: Instant) {
        let Some(pause) = &mut self.pause else {
            return;
        };
        if pause.noted < began {
            *self = Self::default();
        } else if self.last_end.is_some_and(|end| end <= began) {
            pause.until = pause.until.min(pause.since + FIRST_PAUSE);
            self.times = 1;
        }
    }

    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.pause.is_some_and(|pause| now < pause.until)
    }

    /// Whether it holds, or is about to: after a pause it is not over before something could be started, or there was
    /// nothing to start.
    pub(crate) fn lasts(&self, now: Instant) -> bool {
        self.pause.is_some_and(|pause| now < pause.until + LASTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lasts_longer_each_time_up_to_a_limit() {
        let mut now = Instant::now();
        let mut spawn_backoff = SpawnBackoff::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            spawn_backoff.note(now);
            spawn_backoff.note(now);
            let began = now;
            while spawn_backoff.holds(now) {
                now += FIRST_PAUSE;
            }
            pauses.push((now - began).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15], "two at once are one");
        spawn_backoff.clear_by(now);
        spawn_backoff.note(now);
        assert!(!spawn_backoff.holds(now + FIRST_PAUSE), "what was started in between counts");
    }

    #[test]
    fn what_was_started_before_the_obstacle_does_not_end_it() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let mut spawn_backoff = SpawnBackoff::default();
        spawn_backoff.note(began + second);
        spawn_backoff.clear_by(began);
        assert!(spawn_backoff.holds(began + second), "it ran already");
        spawn_backoff.note(began + second * 2);
        spawn_backoff.clear_by(began + second);
        assert!(spawn_backoff.holds(began + second * 3), "it was begun before the last obstacle");
        spawn_backoff.clear_by(began + second * 3);
        assert!(!spawn_backoff.holds(began + second * 3));
    }

    #[test]
    fn where_some_can_be_started_it_does_not_grow() {
        let mut now = Instant::now();
        let mut spawn_backoff = SpawnBackoff::default();
        for _ in 0..4 {
            let began = now;
            spawn_backoff.note(now);
            spawn_backoff.clear_by(began);
            assert!(spawn_backoff.holds(now));
            now += FIRST_PAUSE;
            assert!(!spawn_backoff.holds(now) && spawn_backoff.lasts(now));
        }
        assert!(!spawn_backoff.lasts(now + LASTS), "nothing was tried since");
    }
}
