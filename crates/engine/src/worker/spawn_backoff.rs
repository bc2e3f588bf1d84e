//! The pause after a worker could not start a command, because it cannot write its records, or is out of descriptors or
//! processes. It would have to release every job that it claims. The pause grows each time, so that released attempts
//! do not fill up a full disk.

use std::time::{Duration, Instant};

const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(15);
/// How long after a pause the problem still counts as current: the next start may fail too.
const RECENT_AFTER_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct SpawnBackoff {
    pause: Option<Pause>,
    /// When the previous pause ended.
    last_end: Option<Instant>,
    /// The number of consecutive pauses.
    pauses_in_a_row: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    since: Instant,
    until: Instant,
    /// When the last attempt could not be started.
    noted: Instant,
}

impl SpawnBackoff {
    /// A command could not be started. Failures of several slots during one pause count as one.
    pub(crate) fn note_failed_start(&mut self, now: Instant) {
        match &mut self.pause {
            Some(pause) if now < pause.until => pause.noted = now,
            before => {
                self.last_end = before.map(|pause| pause.until);
                let length = FIRST_BACKOFF.saturating_mul(1 << self.pauses_in_a_row.min(16)).min(MAX_BACKOFF);
                *before = Some(Pause { since: now, until: now + length, noted: now });
                self.pauses_in_a_row += 1;
            }
        }
    }

    /// An attempt that began at this moment was started. If it began before the last failure, it proves nothing about
    /// the present. But if it began after the previous pause, some commands can be started and some cannot, and the
    /// pause need not grow.
    pub(crate) fn note_started(&mut self, began: Instant) {
        let Some(pause) = &mut self.pause else {
            return;
        };
        if pause.noted < began {
            *self = Self::default();
        } else if self.last_end.is_some_and(|end| end <= began) {
            pause.until = pause.until.min(pause.since + FIRST_BACKOFF);
            self.pauses_in_a_row = 1;
        }
    }

    pub(crate) fn is_active(&self, now: Instant) -> bool {
        self.pause.is_some_and(|pause| now < pause.until)
    }

    /// Whether a pause is active or has just ended: the problem is over only when a command was started, or when there
    /// was none to start.
    pub(crate) fn is_recent(&self, now: Instant) -> bool {
        self.pause.is_some_and(|pause| now < pause.until + RECENT_AFTER_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_up_to_a_limit() {
        let mut now = Instant::now();
        let mut spawn_backoff = SpawnBackoff::default();
        let mut pauses = Vec::new();
        for _ in 0..6 {
            spawn_backoff.note_failed_start(now);
            spawn_backoff.note_failed_start(now);
            let began = now;
            while spawn_backoff.is_active(now) {
                now += FIRST_BACKOFF;
            }
            pauses.push((now - began).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15], "two failures at once count as one");
        spawn_backoff.note_started(now);
        spawn_backoff.note_failed_start(now);
        assert!(!spawn_backoff.is_active(now + FIRST_BACKOFF), "a start in between resets it");
    }

    #[test]
    fn a_start_before_the_last_failure_does_not_end_the_pause() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let mut spawn_backoff = SpawnBackoff::default();
        spawn_backoff.note_failed_start(began + second);
        spawn_backoff.note_started(began);
        assert!(spawn_backoff.is_active(began + second), "it began before the first failure");
        spawn_backoff.note_failed_start(began + second * 2);
        spawn_backoff.note_started(began + second);
        assert!(spawn_backoff.is_active(began + second * 3), "it began before the last failure");
        spawn_backoff.note_started(began + second * 3);
        assert!(!spawn_backoff.is_active(began + second * 3));
    }

    #[test]
    fn the_pause_does_not_grow_while_some_commands_start() {
        let mut now = Instant::now();
        let mut spawn_backoff = SpawnBackoff::default();
        for _ in 0..4 {
            let began = now;
            spawn_backoff.note_failed_start(now);
            spawn_backoff.note_started(began);
            assert!(spawn_backoff.is_active(now));
            now += FIRST_BACKOFF;
            assert!(!spawn_backoff.is_active(now) && spawn_backoff.is_recent(now));
        }
        assert!(!spawn_backoff.is_recent(now + RECENT_AFTER_PAUSE), "no start failed since");
    }
}
