//! When a batch will probably be done.

use std::collections::VecDeque;
use std::time::Duration;

use crate::explain::QueueFacts;
use crate::values::timestamp::Timestamp;

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
    /// as is typical and all slots that may work on them. Never less than the rates of its queues need.
    pub fn left(&self, remaining: u64, outlook: &Outlook) -> Option<Duration> {
        if outlook.lanes.iter().any(|lane| lane.queue.paused.is_some()) {
            return None;
        }
        let seconds = match self.per_second() {
            Some(rate) => number(remaining) / rate,
            None => outlook.by_history(remaining)?,
        };
        let by_pace = Duration::try_from_secs_f64(seconds).ok()?;
        Some(by_pace.max(outlook.by_rate(remaining)))
    }
}

/// What is known about the rest of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    pub now: Timestamp,
    /// How long a job takes.
    pub typical: Option<Duration>,
    /// How many can run at once.
    pub slots: u32,
    /// Some of the jobs that are left, by queue; they stand for all.
    pub lanes: Vec<Lane>,
}

/// What is left in one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    pub unfinished: u64,
    /// Those of them that have not started.
    pub waiting: u64,
    pub queue: QueueFacts,
}

impl Outlook {
    /// The slowest queue decides, or all of them together. In seconds; `None` where nothing has ever run, or nobody works.
    fn by_history(&self, remaining: u64) -> Option<f64> {
        let typical = self.typical.filter(|_| self.slots > 0)?.as_secs_f64();
        let lane = |lane: &Lane| {
            let slots = lane.queue.concurrency.map_or(self.slots, |limit| limit.min(self.slots));
            typical * self.scaled(lane.unfinished, remaining) / f64::from(slots.max(1))
        };
        let all = typical * number(remaining) / f64::from(self.slots);
        Some(self.lanes.iter().map(lane).fold(all, f64::max))
    }

    /// The time until the rates have let the last one start.
    fn by_rate(&self, remaining: u64) -> Duration {
        let lane = |lane: &Lane| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of jobs")]
            let waiting = self.scaled(lane.waiting, remaining).round() as u64;
            lane.queue.meter.map(|meter| meter.time_for(self.now, waiting))
        };
        self.lanes.iter().filter_map(lane).max().unwrap_or_default()
    }

    /// A number of those that were looked at, as the part of all that it stands for.
    fn scaled(&self, seen: u64, remaining: u64) -> f64 {
        let all_seen: u64 = self.lanes.iter().map(|lane| lane.unfinished).sum();
        number(seen) * number(remaining) / number(all_seen.max(1))
    }
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::rate::{Meter, Rate};

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn outlook(typical: Option<Duration>, slots: u32) -> Outlook {
        Outlook { now: Timestamp::EPOCH, typical, slots, lanes: Vec::new() }
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
            assert_eq!(pace(samples).left(remaining, &outlook(None, 4)), left.map(seconds), "{samples:?}");
        }
    }

    #[test]
    fn before_anything_is_finished_it_is_told_from_history() {
        let left =
            |remaining, typical, slots| pace(&[(0, 0), (1, 0)]).left(remaining, &outlook(typical, slots));
        assert_eq!(left(100, Some(seconds(2)), 4), Some(seconds(50)));
        assert_eq!(left(100, Some(seconds(2)), 0), None, "nobody works");
        assert_eq!(left(100, None, 4), None, "nothing has ever run");
        assert_eq!(left(u64::MAX, Some(Duration::MAX), 1), None, "beyond all times");
    }

    fn lane(unfinished: u64, waiting: u64, concurrency: Option<u32>, rate: Option<&str>) -> Lane {
        let rate: Option<Rate> = rate.map(|rate| rate.parse().expect("a rate"));
        let meter = rate.map(|rate| Meter { rate, bucket: rate.full(Timestamp::EPOCH) });
        Lane { unfinished, waiting, queue: QueueFacts { concurrency, meter, ..QueueFacts::default() } }
    }

    #[test]
    fn the_limits_of_its_queues_count() {
        let (before, quick) = (&[(0, 0)][..], &[(0, 0), (1, 10)][..]);
        for (why, samples, remaining, lanes, left) in [
            ("nothing limits it", before, 100, vec![lane(100, 100, None, None)], 50),
            ("two at once", before, 100, vec![lane(100, 100, Some(2), None)], 100),
            ("more at once than there are slots", before, 100, vec![lane(100, 100, Some(9), None)], 50),
            ("the rate is slower", before, 100, vec![lane(100, 100, None, Some("10/m"))], 540),
            ("the rate is quicker", before, 100, vec![lane(100, 100, None, Some("10/s"))], 50),
            ("most have started", before, 100, vec![lane(100, 11, None, Some("10/m"))], 50),
            ("a first burst is no pace", quick, 90, vec![lane(90, 90, None, Some("10/m"))], 480),
            ("a pace knows its concurrency", quick, 90, vec![lane(90, 90, Some(1), None)], 9),
            (
                "the slowest queue decides",
                before,
                100,
                vec![lane(50, 50, Some(1), None), lane(50, 50, None, Some("1/s"))],
                100,
            ),
            ("some stand for all", before, 1_000, vec![lane(10, 10, Some(1), None)], 2_000),
            ("none was looked at", before, 100, vec![], 50),
        ] {
            let outlook = Outlook { lanes, ..outlook(Some(seconds(2)), 4) };
            assert_eq!(pace(samples).left(remaining, &outlook), Some(seconds(left)), "{why}");
        }
    }

    #[test]
    fn nobody_knows_how_long_a_pause_is() {
        let mut paused = lane(5, 5, None, None);
        paused.queue.paused = Some((Timestamp::EPOCH, "ada".to_owned(), None));
        let outlook = Outlook { lanes: vec![lane(5, 5, None, None), paused], ..outlook(Some(seconds(2)), 4) };
        assert_eq!(pace(&[(0, 0), (10, 20)]).left(10, &outlook), None);
    }
}
