//! The checker: compares the requests, the ledger of the commands and the contents of the store.
//!
//! Each kind of check has its own file. Most checks examine one job at a time, some the whole trial.

pub(crate) mod aftermath;
mod attempts;
mod case;
pub(crate) mod concurrency;
mod endings;
mod excuses;
mod existence;
pub(crate) mod final_state;
mod invariant;
pub(crate) mod notifications;
pub(crate) mod rates;
mod schedules;
pub(crate) mod timeline;
mod timing;
mod verdict;

pub use case::Case;
pub use invariant::Invariant;
pub use timeline::timeline;
pub use verdict::{Verdict, Violation};

use crate::evidence::Evidence;

/// Checks the evidence of a trial.
pub fn check(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::default();
    for case in case::cases(evidence) {
        existence::check(&case, &evidence.disturbances.lost_tails, &mut verdict);
        final_state::check(&case, &mut verdict);
        if case.is_in_lost_tail {
            continue;
        }
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

#[cfg(test)]
mod tests;
