//! Runs all checks.

use super::verdict::Verdict;
use super::{
    aftermath, attempts, case, concurrency, endings, existence, final_state, notifications, rates, schedules,
    timing,
};
use crate::evidence::Evidence;

/// Checks the evidence of a trial.
pub fn check(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::default();
    for case in case::cases(evidence) {
        existence::check(&case, &mut verdict);
        final_state::check(&case, &mut verdict);
        endings::check(&case, &mut verdict);
        attempts::check(&case, &mut verdict);
        timing::check(&case, &mut verdict);
    }
    concurrency::check(evidence, &mut verdict);
    rates::check(evidence, &mut verdict);
    schedules::check(evidence, &mut verdict);
    notifications::check(evidence, &mut verdict);
    aftermath::check(evidence, &mut verdict);
    verdict
}
