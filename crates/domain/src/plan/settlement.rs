//! The times and the columns of an attempt that has ended.

use std::time::Duration;

use crate::job::LatestAttempt;
use crate::job::outcome::Outcome;
use crate::values::timestamp::Timestamp;

/// When an attempt ran, by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptTimes {
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

impl AttemptTimes {
    /// Claiming and recording are only approximations: a claim may be prefetched, and outcomes wait for a shared commit.
    /// `ended_ago` is the time since the worker saw the end, if it did. Never before the claim, unless the clock was set
    /// back.
    pub fn of(
        claimed_at: Timestamp,
        duration: Duration,
        ended_ago: Option<Duration>,
        now: Timestamp,
    ) -> Self {
        let not_before = |at: Timestamp| if claimed_at > now { at } else { at.max(claimed_at) };
        let finished_at = not_before(now.saturating_sub(ended_ago.unwrap_or_default()));
        let started_at = match ended_ago {
            Some(_) => not_before(finished_at.saturating_sub(duration)),
            None => claimed_at,
        };
        Self { started_at, finished_at }
    }
}

/// The job's columns about an attempt that ended like this.
pub fn latest_attempt(started_at: Timestamp, outcome: Outcome, error: Option<&str>) -> LatestAttempt {
    LatestAttempt {
        started_at: Some(started_at),
        exit_code: outcome.exit_code(),
        signal: outcome.signal(),
        error: if outcome == Outcome::Success { None } else { error.map(str::to_owned) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn times(claimed: i64, took: u64, ended_ago: Option<u64>, now: i64) -> (Timestamp, Timestamp) {
        let seconds = Duration::from_secs;
        let times = AttemptTimes::of(at(claimed), seconds(took), ended_ago.map(seconds), at(now));
        (times.started_at, times.finished_at)
    }

    #[test]
    fn times_are_those_of_the_attempt_and_not_of_its_claim_or_its_commit() {
        assert_eq!(times(10, 5, Some(2), 20), (at(13), at(18)), "prefetched, and recorded late");
        assert_eq!(times(10, 50, Some(2), 20), (at(10), at(18)), "never before the claim");
        assert_eq!(times(10, 1, Some(30), 20), (at(10), at(10)));
        assert_eq!(times(10, 0, None, 20), (at(10), at(20)), "recorded on behalf of a dead worker");
        assert_eq!(times(100, 5, Some(2), 20), (at(13), at(18)), "the clock was set back");
    }

    #[test]
    fn a_success_leaves_no_error() {
        assert_eq!(latest_attempt(at(1), Outcome::Success, Some("noise")).error, None);
        let failed = latest_attempt(at(1), Outcome::Failure { exit_code: 3 }, Some("exit code 3"));
        assert_eq!((failed.exit_code, failed.error.as_deref()), (Some(3), Some("exit code 3")));
    }
}
