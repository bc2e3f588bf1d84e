//! What happened over a time, divided into steps of equal length: the points of a chart.

use std::collections::BTreeMap;
use std::time::Duration;

use super::activity::Activity;
use super::depth::Depth;
use super::resolution::{minute_of, start_of_minute};
use crate::values::timestamp::Timestamp;

/// The most points that a history has.
pub const MAX_POINTS: i64 = 300;

/// The lengths of a step, in minutes. Longer ones are whole days.
const STEPS: [i64; 13] = [1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 360, 720, DAY];
const DAY: i64 = 24 * 60;

/// What happened in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    pub enqueued: u64,
    pub activity: Activity,
    /// The most jobs that a sample within the step found; `None` without a sample.
    pub depth: Option<Depth>,
}

/// A time that ends now, with what happened in it. A step in which nothing happened and nothing was sampled has no point:
/// no worker ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    first: i64,
    step: i64,
    /// By the minute in which their step begins.
    points: BTreeMap<i64, Point>,
}

impl Timeline {
    pub fn new(range: Duration, now: Timestamp) -> Self {
        let minutes = i64::try_from(range.as_secs().div_ceil(60)).unwrap_or(i64::MAX).max(1);
        let fits = |step: &i64| minutes / step < MAX_POINTS;
        let days = || (minutes / DAY).div_euclid(MAX_POINTS).saturating_add(1).saturating_mul(DAY);
        let step = STEPS.into_iter().find(fits).unwrap_or_else(days);
        let now = minute_of(now);
        // The current step is not over; with it the range has one step more than it would have otherwise.
        let first = start_of(now.saturating_sub(minutes.saturating_sub(1)), step);
        Self { first, step, points: BTreeMap::new() }
    }

    /// Leaves out what is before a later beginning of the time.
    pub fn begin_with(&mut self, first: i64) {
        self.first = start_of(first, self.step);
        self.points = self.points.split_off(&self.first);
    }

    /// The first minute that it covers.
    pub fn first_minute(&self) -> i64 {
        self.first
    }

    pub fn step(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.step).unwrap_or(0).saturating_mul(60))
    }

    /// The number of the step that a time falls into, counted from the first one.
    pub fn step_of(&self, at: Timestamp) -> usize {
        usize::try_from((minute_of(at) - self.first).div_euclid(self.step)).unwrap_or(0)
    }

    pub fn add_activity(&mut self, minute: i64, activity: &Activity) {
        if *activity != Activity::default()
            && let Some(point) = self.point(minute)
        {
            point.activity.add(activity);
        }
    }

    /// Adds the sample of a minute, summed up over the queues.
    pub fn add_depth(&mut self, minute: i64, depth: Depth) {
        if let Some(point) = self.point(minute) {
            let known = point.depth.get_or_insert_default();
            known.pending = known.pending.max(depth.pending);
            known.processing = known.processing.max(depth.processing);
            known.failed = known.failed.max(depth.failed);
            known.dead = known.dead.max(depth.dead);
        }
    }

    /// Adds jobs that were enqueued between these times, spread evenly. The parts that fall into the time add up to all of
    /// them, as far as none is before it.
    pub fn add_enqueued(&mut self, jobs: u64, from: Timestamp, to: Timestamp) {
        if jobs == 0 {
            return;
        }
        let (start, end) = (from.as_millis(), to.as_millis());
        if start >= end {
            self.add_jobs(minute_of(to), jobs);
            return;
        }
        // How many were enqueued before a time.
        let before = |at: i64| {
            let part = i128::from(at.clamp(start, end) - start);
            u64::try_from(i128::from(jobs) * part / i128::from(end - start)).unwrap_or(jobs)
        };
        let mut step = start_of(minute_of(from), self.step).max(self.first);
        let mut counted = before(start_of_minute(step).as_millis());
        while counted < jobs {
            let next = step.saturating_add(self.step);
            let until = before(start_of_minute(next).as_millis());
            self.add_jobs(step, until - counted);
            (counted, step) = (until, next);
        }
    }

    fn add_jobs(&mut self, minute: i64, jobs: u64) {
        if jobs > 0
            && let Some(point) = self.point(minute)
        {
            point.enqueued += jobs;
        }
    }

    /// The point of a minute, unless that is before the time.
    fn point(&mut self, minute: i64) -> Option<&mut Point> {
        let start = start_of(minute, self.step);
        (start >= self.first).then(|| self.points.entry(start).or_default())
    }

    /// Each with the time at which its step begins, in the order of time.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, &Point)> {
        self.points.iter().map(|(minute, point)| (start_of_minute(*minute), point))
    }
}

fn start_of(minute: i64, step: i64) -> i64 {
    minute - minute.rem_euclid(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3_600)
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * MINUTE)
    }

    #[test]
    fn a_step_is_as_short_as_the_number_of_points_allows() {
        let now = at(29_000_003);
        for (range, minutes) in [
            (Duration::ZERO, 1),
            (Duration::from_secs(15 * 60), 1),
            (hours(1), 1),
            (hours(6), 2),
            (hours(24), 5),
            (hours(7 * 24), 60),
            (hours(30 * 24), 180),
            (hours(90 * 24), 720),
            (hours(300 * 24), 2 * 24 * 60),
            (hours(3_000 * 24), 11 * 24 * 60),
        ] {
            let timeline = Timeline::new(range, now);
            assert_eq!(timeline.step(), Duration::from_secs(minutes * 60), "{range:?}");
            let count = timeline.step_of(now) + 1;
            assert!(count <= 300, "{range:?} has {count} points");
        }
        assert!(Timeline::new(Duration::MAX, now).step() > Duration::ZERO);
    }

    #[test]
    fn what_is_before_the_time_is_left_out_and_steps_sum_up() {
        let mut timeline = Timeline::new(hours(6), at(1_000));
        let mut activity = Activity::default();
        activity.record_start(Duration::ZERO);
        for minute in [600, 640, 641, 642, 999] {
            timeline.add_activity(minute, &activity);
        }
        timeline.add_activity(700, &Activity::default());
        let started: Vec<(i64, u64)> =
            timeline.points().map(|(at, point)| (minute_of(at), point.activity.started)).collect();
        assert_eq!(started, [(640, 2), (642, 1), (998, 1)]);
    }

    #[test]
    fn a_later_beginning_leaves_out_the_steps_before_it() {
        let mut timeline = Timeline::new(hours(6), at(1_000));
        let mut activity = Activity::default();
        activity.record_start(Duration::ZERO);
        for minute in [640, 642, 999] {
            timeline.add_activity(minute, &activity);
        }
        timeline.begin_with(643);
        assert_eq!(timeline.first_minute(), 642, "steps are whole");
        timeline.add_activity(641, &activity);
        let minutes: Vec<i64> = timeline.points().map(|(at, _)| minute_of(at)).collect();
        assert_eq!(minutes, [642, 998]);
    }

    #[test]
    fn the_deepest_sample_of_a_step_counts() {
        let mut timeline = Timeline::new(hours(6), at(1_000));
        timeline.add_depth(900, Depth { pending: 4, processing: 1, ..Depth::default() });
        timeline.add_depth(901, Depth { pending: 2, processing: 3, ..Depth::default() });
        let depths: Vec<_> = timeline.points().map(|(_, point)| point.depth).collect();
        assert_eq!(depths, [Some(Depth { pending: 4, processing: 3, ..Depth::default() })]);
    }

    #[test]
    fn enqueued_jobs_are_spread_and_none_gets_lost() {
        for (jobs, from, to, expected) in [
            (10, 990, 991, vec![(990, 10)]),
            (10, 991, 991, vec![(991, 10)]),
            (10, 990, 994, vec![(990, 2), (991, 3), (992, 2), (993, 3)]),
            (1, 990, 993, vec![(992, 1)]),
            (60, 921, 981, (941..981).map(|minute| (minute, 1)).collect()),
            (60, 800, 860, vec![]),
        ] {
            let mut timeline = Timeline::new(hours(1), at(1_000));
            timeline.add_enqueued(jobs, at(from), at(to));
            let found: Vec<(i64, u64)> =
                timeline.points().map(|(at, point)| (minute_of(at), point.enqueued)).collect();
            assert_eq!(found, expected, "{jobs} from {from} to {to}");
        }
    }
}
