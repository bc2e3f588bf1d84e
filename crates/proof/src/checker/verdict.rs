//! The verdict of the checker.

use std::collections::BTreeMap;
use std::fmt;

use super::invariant::Invariant;

#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many facts were checked for each invariant. An invariant without a check is not verified.
    pub checks: BTreeMap<Invariant, u64>,
    pub violations: Vec<Violation>,
    /// Processes that overlapped with a later attempt because their host was stopped and could not end them.
    pub excused_overlaps: u64,
    /// Acknowledged jobs that were lost together with the commits that a standby had not received.
    pub lost_in_tails: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub job: Option<String>,
    pub what: String,
}

impl Verdict {
    /// Records one check; `what` describes the violation if it does not hold.
    pub(super) fn expect(
        &mut self,
        invariant: Invariant,
        job: Option<&str>,
        holds: bool,
        what: impl FnOnce() -> String,
    ) {
        *self.checks.entry(invariant).or_default() += 1;
        if !holds {
            self.violations.push(Violation { invariant, job: job.map(str::to_owned), what: what() });
        }
    }

    pub fn is_broken(&self, invariant: Invariant) -> bool {
        self.violations.iter().any(|violation| violation.invariant == invariant)
    }

    /// Adds the verdict of another trial.
    pub fn merge(&mut self, other: Self) {
        for (invariant, count) in other.checks {
            *self.checks.entry(invariant).or_default() += count;
        }
        self.violations.extend(other.violations);
        self.excused_overlaps += other.excused_overlaps;
        self.lost_in_tails += other.lost_in_tails;
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.job {
            Some(job) => write!(out, "{}, job {job}: {}", self.invariant, self.what),
            None => write!(out, "{}: {}", self.invariant, self.what),
        }
    }
}
