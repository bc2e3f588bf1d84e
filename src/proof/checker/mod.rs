//! The checker: holds what was asked for, what the commands wrote and what the store says against each other.
//!
//! One file per kind of question. Each looks at one job at a time, but for those about the whole.

mod attempts;
mod case;
mod crowding;
mod endings;
mod existence;
mod invariant;
mod remains;
mod story;
mod timing;
mod verdict;

pub use case::Case;
pub use invariant::Invariant;
pub use story::story;
pub use verdict::{Verdict, Violation};

use super::evidence::Evidence;

/// Judges a trial.
pub fn check(evidence: &Evidence) -> Verdict {
    let mut verdict = Verdict::default();
    for case in case::cases(evidence) {
        existence::check(&case, &mut verdict);
        endings::check(&case, &mut verdict);
        attempts::check(&case, &mut verdict);
        timing::check(&case, &mut verdict);
    }
    crowding::check(evidence, &mut verdict);
    remains::check(evidence, &mut verdict);
    verdict
}

#[cfg(test)]
mod tests;
