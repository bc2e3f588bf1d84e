//! What the checker found.

use std::collections::BTreeMap;
use std::fmt;

use super::invariant::Invariant;

#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many facts each invariant was held against: one that was never looked at has not held.
    pub looked_at: BTreeMap<Invariant, u64>,
    pub violations: Vec<Violation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub job: Option<String>,
    pub what: String,
}

impl Verdict {
    /// One fact: it is as it must be, or this is what is wrong.
    pub(super) fn expect(
        &mut self,
        invariant: Invariant,
        job: Option<&str>,
        holds: bool,
        what: impl FnOnce() -> String,
    ) {
        *self.looked_at.entry(invariant).or_default() += 1;
        if !holds {
            self.violations.push(Violation { invariant, job: job.map(str::to_owned), what: what() });
        }
    }

    pub fn is_broken(&self, invariant: Invariant) -> bool {
        self.violations.iter().any(|violation| violation.invariant == invariant)
    }

    /// Adds what another trial found.
    pub fn add(&mut self, other: Self) {
        for (invariant, count) in other.looked_at {
            *self.looked_at.entry(invariant).or_default() += count;
        }
        self.violations.extend(other.violations);
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
