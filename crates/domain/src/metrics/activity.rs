//! The attempts of a queue within a time: how many started and ended, in which way, and how long jobs waited and ran.

use std::time::Duration;

use super::histogram::{Histogram, RUN_BOUNDS, WAIT_BOUNDS};
use crate::job::outcome::OutcomeName;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Claims.
    pub started: u64,
    /// How late the claims were: the time since their jobs became due.
    pub waits: Histogram,
    /// Ended attempts, in the order of [`OutcomeName::ALL`].
    pub outcomes: [u64; OutcomeName::ALL.len()],
    /// Jobs that became dead.
    pub died: u64,
    /// The durations of attempts, without the interrupted ones: those say nothing about their commands.
    pub runs: Histogram,
    /// The processor time of all attempts, in milliseconds.
    pub cpu_ms: u64,
}

/// An attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    pub outcome: OutcomeName,
    pub duration: Duration,
    pub cpu: Option<Duration>,
    /// Its job is dead now.
    pub died: bool,
}

impl Activity {
    pub fn record_start(&mut self, wait: Duration) {
        self.started += 1;
        self.waits.record(wait, &WAIT_BOUNDS);
    }

    pub fn record_end(&mut self, ended: &EndedAttempt) {
        self.outcomes[ended.outcome as usize] += 1;
        self.died += u64::from(ended.died);
        if !ended.outcome.is_interrupted() {
            self.runs.record(ended.duration, &RUN_BOUNDS);
        }
        let cpu_ms = ended.cpu.map_or(0, |cpu| u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX));
        self.cpu_ms = self.cpu_ms.saturating_add(cpu_ms);
    }

    pub fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.waits.add(&other.waits);
        for (count, more) in self.outcomes.iter_mut().zip(other.outcomes) {
            *count += more;
        }
        self.died += other.died;
        self.runs.add(&other.runs);
        self.cpu_ms = self.cpu_ms.saturating_add(other.cpu_ms);
    }

    pub fn ended(&self, outcome: OutcomeName) -> u64 {
        self.outcomes[outcome as usize]
    }

    /// Attempts that ended badly by their own doing.
    pub fn failed(&self) -> u64 {
        let bad = [OutcomeName::Failure, OutcomeName::Signal, OutcomeName::Timeout, OutcomeName::SpawnError];
        bad.into_iter().map(|outcome| self.ended(outcome)).sum()
    }

    /// Jobs that finished: those that completed, and those that became dead.
    pub fn finished(&self) -> u64 {
        self.ended(OutcomeName::Success) + self.died
    }

    /// Failed attempts that another attempt follows.
    pub fn retries(&self) -> u64 {
        self.failed().saturating_sub(self.died)
    }

    /// The part of the attempts that succeeded, from 0 to 1, without the interrupted ones. `None` without any.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn success_rate(&self) -> Option<f64> {
        let succeeded = self.ended(OutcomeName::Success);
        let all = succeeded + self.failed();
        (all > 0).then(|| succeeded as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: OutcomeName, died: bool) -> EndedAttempt {
        EndedAttempt {
            outcome,
            duration: Duration::from_millis(30),
            cpu: Some(Duration::from_millis(7)),
            died,
        }
    }

    #[test]
    fn interrupted_attempts_count_but_say_nothing_about_run_times_and_success() {
        for (outcome, is_interrupted) in [
            (OutcomeName::Success, false),
            (OutcomeName::Failure, false),
            (OutcomeName::Signal, false),
            (OutcomeName::Timeout, false),
            (OutcomeName::SpawnError, false),
            (OutcomeName::Lost, true),
            (OutcomeName::Cancelled, true),
            (OutcomeName::Released, true),
        ] {
            let mut activity = Activity::default();
            activity.record_end(&ended(outcome, false));
            assert_eq!((activity.ended(outcome), activity.cpu_ms), (1, 7), "{outcome:?}");
            assert_eq!(activity.runs.count(), u64::from(!is_interrupted), "{outcome:?}");
            assert_eq!(activity.success_rate().is_none(), is_interrupted, "{outcome:?}");
        }
    }

    #[test]
    fn a_failure_leads_to_a_retry_or_to_death() {
        let mut activity = Activity::default();
        for (outcome, died) in [
            (OutcomeName::Success, false),
            (OutcomeName::Failure, false),
            (OutcomeName::Timeout, false),
            (OutcomeName::Signal, true),
        ] {
            activity.record_start(Duration::from_millis(3));
            activity.record_end(&ended(outcome, died));
        }
        assert_eq!((activity.started, activity.waits.count()), (4, 4));
        assert_eq!((activity.failed(), activity.retries(), activity.died), (3, 2, 1));
        assert_eq!((activity.finished(), activity.success_rate()), (2, Some(0.25)));
        let mut twice = activity;
        twice.add(&activity);
        assert_eq!((twice.started, twice.failed(), twice.died, twice.cpu_ms), (8, 6, 2, 56));
        assert_eq!((twice.runs.count(), twice.waits.sum_ms), (8, 24));
    }
}
