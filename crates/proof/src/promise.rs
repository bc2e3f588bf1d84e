//! The promises of queuectl and the invariants that verify them.

use super::checker::Invariant;

domain::named_enum! {
    /// Each is named by its sentence in the results.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Promise {
        NeverLost = "an acknowledged job is never lost",
        RecordedOnce = "an attempt starts at most once, and one result is recorded",
        NoOverlap = "two attempts of one job never overlap",
        NoticedSoon = "a dead worker is noticed in under a second",
        NothingSilent = "nothing is done silently",
    }
}

impl Promise {
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
