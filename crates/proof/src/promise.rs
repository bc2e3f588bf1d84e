//! The promises of queuectl and the invariants that verify them.

use super::checker::Invariant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    NeverLost,
    RecordedOnce,
    NoOverlap,
    NoticedSoon,
    NothingSilent,
}

impl Promise {
    pub const ALL: [Self; 5] =
        [Self::NeverLost, Self::RecordedOnce, Self::NoOverlap, Self::NoticedSoon, Self::NothingSilent];

    pub fn description(self) -> &'static str {
        match self {
            Self::NeverLost => "an acknowledged job is never lost",
            Self::RecordedOnce => "an attempt starts at most once, and one result is recorded",
            Self::NoOverlap => "two attempts of one job never overlap",
            Self::NoticedSoon => "a dead worker is noticed in under a second",
            Self::NothingSilent => "nothing is done silently",
        }
    }

    /// The invariants that must hold for it.
    pub fn invariants(self) -> &'static [Invariant] {
        match self {
            Self::NeverLost => &[Invariant::NoneLost, Invariant::NoneInvented, Invariant::Terminal],
            Self::RecordedOnce => &[
                Invariant::OneSuccess,
                Invariant::StartedOnce,
                Invariant::NoGaps,
                Invariant::RealOutcome,
                Invariant::NotTooEarly,
                Invariant::CancelHolds,
                Invariant::WithinLimits,
                Invariant::Fenced,
            ],
            Self::NoOverlap => &[Invariant::NoOverlap, Invariant::NothingLeft],
            Self::NoticedSoon => &[Invariant::NoticedSoon],
            Self::NothingSilent => &[Invariant::HooksNotified, Invariant::ProblemsReported],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invariant_belongs_to_one_promise() {
        for invariant in Invariant::ALL {
            let promises = Promise::ALL.iter().filter(|promise| promise.invariants().contains(&invariant));
            assert_eq!(promises.count(), 1, "{invariant}");
        }
    }
}
