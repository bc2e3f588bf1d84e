//! Runs all checks.

use super::verdict::Verdict;
use super::{
    attempts, case, crowding, endings, existence, pace, remains, schedules, standing, telling, timing,
};
use crate::evidence::Evidence;

/// Checks the evidence of a trial.
pub fn check(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::default();
    for case in case::cases(evidence) {
        existence::check(&case, &mut verdict);
        standing::check(&case, &mut verdict);
        endings::check(&case, &mut verdict);
        attempts::check(&case, &mut verdict);
        timing::check(&case, &mut verdict);
    }
    crowding::check(evidence, &mut verdict);
    pace::check(evidence, &mut verdict);
    schedules::check(evidence, &mut verdict);
    telling::check(evidence, &mut verdict);
    remains::check(evidence, &mut verdict);
    verdict
}
