//! Estimates when a batch will be finished.

use std::collections::VecDeque;
use std::time::Duration;

use crate::explain::{QueueFacts, expected_rest};
use crate::values::timestamp::Timestamp;

/// How far back the completion rate is measured.
const WINDOW: Duration = Duration::from_secs(60);

/// How fast the jobs of a batch finish: samples of its finished count, oldest first.
#[derive(Debug, Default)]
pub struct CompletionRate {
    samples: VecDeque<(Duration, u64)>,
}

impl CompletionRate {
    /// Adds a sample: at time `at`, `finished` jobs were finished. `at` counts from any fixed origin.
    pub fn record(&mut self, at: Duration, finished: u64) {
        self.samples.push_back((at, finished));
        while self.samples.len() > 2 && self.samples.front().is_some_and(|(oldest, _)| at > *oldest + WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Finished jobs per second over the last minute; `None` while no job has finished.
    pub fn per_second(&self) -> Option<f64> {
        let ((began, before), (at, now)) = (self.samples.front()?, self.samples.back()?);
        let gained = u32::try_from(now.saturating_sub(*before)).unwrap_or(u32::MAX);
        let over = at.saturating_sub(*began).as_secs_f64();
        (gained > 0 && over > 0.0).then(|| f64::from(gained) / over)
    }

    /// The time until the batch is finished, at the rate of the last minute. Until a job has finished, the estimate
    /// assumes the typical duration per job and all slots that may run them. Never shorter than the rate limits of its
    /// queues require, nor than the job takes that becomes due last. Unknown without slots, and if a job has already run
    /// much longer than usual.
    pub fn time_left(&self, remaining: u64, facts: &EtaFacts) -> Option<Duration> {
        if facts.slots == 0 || facts.queue_samples.iter().any(|sample| sample.queue.paused.is_some()) {
            return None;
        }
        let seconds = match self.per_second() {
            Some(rate) => number(remaining) / rate,
            None => facts.seconds_by_history(remaining)?,
        };
        let by_rate_of_completion = Duration::try_from_secs_f64(seconds).ok()?;
        let by_all_jobs =
            by_rate_of_completion.max(facts.time_by_rate_limits(remaining)).max(facts.time_by_last_due());
        match facts.overdue() {
            Some((elapsed, typical)) if elapsed > by_all_jobs => expected_rest(elapsed, typical),
            Some(_) | None => Some(by_all_jobs),
        }
    }
}

/// The facts about the unfinished jobs of a batch that an estimate needs.
#[derive(Clone, Debug, PartialEq)]
pub struct EtaFacts {
    pub now: Timestamp,
    /// The typical duration of a job.
    pub typical: Option<Duration>,
    /// How many jobs can run at the same time.
    pub slots: u32,
    /// How long the job that runs longest has run.
    pub longest_running: Option<Duration>,
    /// When the job becomes due that becomes due last: it is scheduled, or waits for its retry.
    pub last_due_at: Option<Timestamp>,
    /// A sample of the unfinished jobs, by queue; it stands for all of them.
    pub queue_samples: Vec<QueueSample>,
}

/// The sampled jobs of one queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSample {
    pub unfinished: u64,
    /// How many of the unfinished jobs have not started.
    pub waiting: u64,
    pub queue: QueueFacts,
}

impl EtaFacts {
    /// How long the job that runs longest has run, and the typical duration, if it has run longer than that.
    fn overdue(&self) -> Option<(Duration, Duration)> {
        self.longest_running.zip(self.typical).filter(|(elapsed, typical)| elapsed > typical)
    }

    /// The larger of the time of the slowest queue and the time of all queues together, in seconds. `None` if no job has
    /// ever run or there are no slots.
    fn seconds_by_history(&self, remaining: u64) -> Option<f64> {
        let typical = self.typical.filter(|_| self.slots > 0)?.as_secs_f64();
        let sample = |sample: &QueueSample| {
            let slots = sample.queue.concurrency.map_or(self.slots, |limit| limit.min(self.slots));
            typical * self.scaled(sample.unfinished, remaining) / f64::from(slots.max(1))
        };
        let all = typical * number(remaining) / f64::from(self.slots);
        Some(self.queue_samples.iter().map(sample).fold(all, f64::max))
    }

    /// The time until the rate limits have allowed the last job to start.
    fn time_by_rate_limits(&self, remaining: u64) -> Duration {
        let sample = |sample: &QueueSample| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of jobs")]
            let waiting = self.scaled(sample.waiting, remaining).round() as u64;
            sample.queue.meter.map(|meter| meter.time_for(self.now, waiting))
        };
        self.queue_samples.iter().filter_map(sample).max().unwrap_or_default()
    }

    /// The time until the job that becomes due last has run.
    fn time_by_last_due(&self) -> Duration {
        let due_in = self.last_due_at.filter(|at| *at > self.now).map(|at| at.since(self.now));
        due_in.map_or(Duration::ZERO, |due_in| due_in.saturating_add(self.typical.unwrap_or_default()))
    }

    /// Extrapolates a count of sampled jobs to all remaining jobs.
    fn scaled(&self, sampled: u64, remaining: u64) -> f64 {
        let all_sampled: u64 = self.queue_samples.iter().map(|sample| sample.unfinished).sum();
        number(sampled) * number(remaining) / number(all_sampled.max(1))
    }
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::wait_reason::Pause;
    use crate::queue::rate::{Meter, Rate};

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn facts(typical: Option<Duration>, slots: u32) -> EtaFacts {
        EtaFacts {
            now: Timestamp::EPOCH,
            typical,
            slots,
            longest_running: None,
            last_due_at: None,
            queue_samples: Vec::new(),
        }
    }

    fn rate_of(samples: &[(u64, u64)]) -> CompletionRate {
        let mut rate = CompletionRate::default();
        for (at, finished) in samples {
            rate.record(seconds(*at), *finished);
        }
        rate
    }

    #[test]
    fn the_estimate_uses_the_rate_of_the_last_minute() {
        for (samples, remaining, left) in [
            (&[(0, 0), (10, 20)][..], 100, Some(50)),
            (&[(0, 5), (10, 5), (20, 25)], 10, Some(10)),
            // Samples older than the window do not count: the rate has increased since.
            (&[(0, 0), (100, 10), (160, 70), (161, 71)], 61, Some(61)),
            (&[(0, 0), (10, 20)], 0, Some(0)),
            (&[(0, 7), (10, 7)], 5, None),
            (&[(0, 7)], 5, None),
            (&[], 5, None),
            // Some finished jobs were removed.
            (&[(0, 7), (10, 3)], 5, None),
        ] {
            assert_eq!(
                rate_of(samples).time_left(remaining, &facts(None, 4)),
                left.map(seconds),
                "{samples:?}"
            );
        }
    }

    #[test]
    fn before_a_job_has_finished_the_estimate_uses_history() {
        let left = |remaining, typical, slots| {
            rate_of(&[(0, 0), (1, 0)]).time_left(remaining, &facts(typical, slots))
        };
        assert_eq!(left(100, Some(seconds(2)), 4), Some(seconds(50)));
        assert_eq!(left(100, Some(seconds(2)), 0), None, "no slots");
        assert_eq!(left(100, None, 4), None, "no job has ever run");
        assert_eq!(left(u64::MAX, Some(Duration::MAX), 1), None, "out of range");
    }

    #[test]
    fn a_job_that_runs_longer_than_usual_is_expected_to_run_as_long_again() {
        let left = |remaining, elapsed| {
            let facts = EtaFacts { longest_running: Some(seconds(elapsed)), ..facts(Some(seconds(2)), 1) };
            rate_of(&[(0, 0), (1, 0)]).time_left(remaining, &facts)
        };
        assert_eq!(left(1, 1), Some(seconds(2)));
        assert_eq!(left(1, 15), Some(seconds(15)));
        assert_eq!(left(1, 420), None, "the typical duration says nothing about such a job");
        assert_eq!(left(500, 420), Some(seconds(1_000)), "the other jobs take longer");
    }

    #[test]
    fn a_job_that_is_not_due_yet_is_waited_for() {
        let left = |samples: &[(u64, u64)], typical, due_in| {
            let last_due_at = Some(Timestamp::EPOCH.saturating_add(seconds(due_in)));
            rate_of(samples).time_left(2, &EtaFacts { last_due_at, ..facts(typical, 1) })
        };
        assert_eq!(left(&[(0, 0), (10, 20)], None, 300), Some(seconds(300)));
        assert_eq!(left(&[(0, 0), (10, 20)], Some(seconds(2)), 300), Some(seconds(302)));
        assert_eq!(left(&[(0, 0), (10, 20)], Some(seconds(2)), 0), Some(seconds(1)), "it is due");
        assert_eq!(left(&[(0, 0)], Some(seconds(2)), 300), Some(seconds(302)));
        assert_eq!(left(&[(0, 0)], None, 300), None, "no job has ever run");
    }

    #[test]
    fn without_slots_there_is_no_estimate() {
        assert_eq!(rate_of(&[(0, 0), (10, 20)]).time_left(10, &facts(Some(seconds(2)), 0)), None);
    }

    fn sample(unfinished: u64, waiting: u64, concurrency: Option<u32>, rate: Option<&str>) -> QueueSample {
        let rate: Option<Rate> = rate.map(|rate| rate.parse().expect("valid rate"));
        let meter = rate.map(|rate| Meter { rate, bucket: rate.full(Timestamp::EPOCH) });
        QueueSample { unfinished, waiting, queue: QueueFacts { concurrency, meter, ..QueueFacts::default() } }
    }

    #[test]
    fn the_limits_of_the_queues_count() {
        let (before, quick) = (&[(0, 0)][..], &[(0, 0), (1, 10)][..]);
        for (why, samples, remaining, queue_samples, left) in [
            ("no limit", before, 100, vec![sample(100, 100, None, None)], 50),
            ("two at the same time", before, 100, vec![sample(100, 100, Some(2), None)], 100),
            ("concurrency above the number of slots", before, 100, vec![sample(100, 100, Some(9), None)], 50),
            ("the rate limit is slower", before, 100, vec![sample(100, 100, None, Some("10/m"))], 540),
            ("the rate limit is faster", before, 100, vec![sample(100, 100, None, Some("10/s"))], 50),
            ("most jobs have started", before, 100, vec![sample(100, 11, None, Some("10/m"))], 50),
            ("an initial burst does not last", quick, 90, vec![sample(90, 90, None, Some("10/m"))], 480),
            ("a measured rate includes concurrency", quick, 90, vec![sample(90, 90, Some(1), None)], 9),
            (
                "the slowest queue decides",
                before,
                100,
                vec![sample(50, 50, Some(1), None), sample(50, 50, None, Some("1/s"))],
                100,
            ),
            ("a sample stands for all", before, 1_000, vec![sample(10, 10, Some(1), None)], 2_000),
            ("no sample", before, 100, vec![], 50),
        ] {
            let facts = EtaFacts { queue_samples, ..facts(Some(seconds(2)), 4) };
            assert_eq!(rate_of(samples).time_left(remaining, &facts), Some(seconds(left)), "{why}");
        }
    }

    #[test]
    fn a_paused_queue_makes_the_estimate_unknown() {
        let mut paused = sample(5, 5, None, None);
        paused.queue.paused = Some((Timestamp::EPOCH, Pause { by: "ada".to_owned(), reason: None }));
        let facts =
            EtaFacts { queue_samples: vec![sample(5, 5, None, None), paused], ..facts(Some(seconds(2)), 4) };
        assert_eq!(rate_of(&[(0, 0), (10, 20)]).time_left(10, &facts), None);
    }
}
