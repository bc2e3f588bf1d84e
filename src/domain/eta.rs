//! When a batch will probably be done.

use std::collections::VecDeque;
use std::time::Duration;

/// How far back it counts.
const WINDOW: Duration = Duration::from_secs(60);

/// How many jobs were finished at which moments, from old to new.
#[derive(Debug, Default)]
pub struct Pace {
    samples: VecDeque<(Duration, u64)>,
}

impl Pace {
    /// Takes how many are finished at `at`, counted from any beginning.
    pub fn note(&mut self, at: Duration, finished: u64) {
        self.samples.push_back((at, finished));
        while self.samples.len() > 2 && self.samples.front().is_some_and(|(oldest, _)| at > *oldest + WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Jobs a second over the last minute; `None` while none was finished.
    pub fn per_second(&self) -> Option<f64> {
        let ((began, before), (at, now)) = (self.samples.front()?, self.samples.back()?);
        let gained = u32::try_from(now.saturating_sub(*before)).unwrap_or(u32::MAX);
        let over = at.saturating_sub(*began).as_secs_f64();
        (gained > 0 && over > 0.0).then(|| f64::from(gained) / over)
    }

    /// How long the rest will take: at the pace of the last minute, or before that can be told, if each job takes as long
    /// as is typical and all slots work on them.
    pub fn left(&self, remaining: u64, typical: Option<Duration>, slots: u32) -> Option<Duration> {
        let remaining = f64::from(u32::try_from(remaining).unwrap_or(u32::MAX));
        let seconds = match (self.per_second(), typical) {
            (Some(rate), _) => remaining / rate,
            (None, Some(typical)) if slots > 0 => typical.as_secs_f64() * remaining / f64::from(slots),
            (None, _) => return None,
        };
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn pace(samples: &[(u64, u64)]) -> Pace {
        let mut pace = Pace::default();
        for (at, finished) in samples {
            pace.note(seconds(*at), *finished);
        }
        pace
    }

    #[test]
    fn the_rest_takes_as_long_as_the_last_minute_says() {
        for (samples, remaining, left) in [
            (&[(0, 0), (10, 20)][..], 100, Some(50)),
            (&[(0, 5), (10, 5), (20, 25)], 10, Some(10)),
            // What is long past does not count: it has become quicker since.
            (&[(0, 0), (100, 10), (160, 70), (161, 71)], 61, Some(61)),
            (&[(0, 0), (10, 20)], 0, Some(0)),
            (&[(0, 7), (10, 7)], 5, None),
            (&[(0, 7)], 5, None),
            (&[], 5, None),
            // Somebody removed some.
            (&[(0, 7), (10, 3)], 5, None),
        ] {
            assert_eq!(pace(samples).left(remaining, None, 4), left.map(seconds), "{samples:?}");
        }
    }

    #[test]
    fn before_anything_is_finished_it_is_told_from_history() {
        let pace = pace(&[(0, 0), (1, 0)]);
        assert_eq!(pace.left(100, Some(seconds(2)), 4), Some(seconds(50)));
        assert_eq!(pace.left(100, Some(seconds(2)), 0), None, "nobody works");
        assert_eq!(pace.left(100, None, 4), None, "nothing has ever run");
        assert_eq!(pace.left(u64::MAX, Some(Duration::MAX), 1), None, "beyond all times");
    }
}
