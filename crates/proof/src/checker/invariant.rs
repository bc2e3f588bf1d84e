//! The invariants.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    NoneLost,
    NoneInvented,
    Terminal,
    OneSuccess,
    StartedOnce,
    NoOverlap,
    NoGaps,
    RealOutcome,
    NotTooEarly,
    CancelHolds,
    WithinLimits,
    Fenced,
    NothingLeft,
    HooksNotified,
    NoticedSoon,
    ProblemsReported,
}

impl Invariant {
    pub const ALL: [Self; 16] = [
        Self::NoneLost,
        Self::NoneInvented,
        Self::Terminal,
        Self::OneSuccess,
        Self::StartedOnce,
        Self::NoOverlap,
        Self::NoGaps,
        Self::RealOutcome,
        Self::NotTooEarly,
        Self::CancelHolds,
        Self::WithinLimits,
        Self::Fenced,
        Self::NothingLeft,
        Self::HooksNotified,
        Self::NoticedSoon,
        Self::ProblemsReported,
    ];

    /// The short name used in the documentation.
    pub fn code(self) -> &'static str {
        match self {
            Self::NoneLost => "I1",
            Self::NoneInvented => "I2",
            Self::Terminal => "I3",
            Self::OneSuccess => "I4",
            Self::StartedOnce => "I5",
            Self::NoOverlap => "I6",
            Self::NoGaps => "I7",
            Self::RealOutcome => "I8",
            Self::NotTooEarly => "I9",
            Self::CancelHolds => "I10",
            Self::WithinLimits => "I11",
            Self::Fenced => "I12",
            Self::NothingLeft => "I13",
            Self::HooksNotified => "I14",
            Self::NoticedSoon => "P4",
            Self::ProblemsReported => "P5",
        }
    }

    /// The invariant in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::NoneLost => "every acknowledged job exists",
            Self::NoneInvented => "no job exists that was not requested",
            Self::Terminal => "after healing every job ends",
            Self::OneSuccess => "at most one success is recorded, and it is real",
            Self::StartedOnce => "an attempt starts at most once",
            Self::NoOverlap => "attempts of one job do not overlap",
            Self::NoGaps => "attempt numbers have no gaps and stay within the policy",
            Self::RealOutcome => "the recorded exit code or signal is the real one",
            Self::NotTooEarly => "no attempt starts before its time or before its dependencies",
            Self::CancelHolds => "nothing starts after an acknowledged cancel",
            Self::WithinLimits => "slots, queues, rates, keys and schedules are never exceeded",
            Self::Fenced => "only the current attempt records a result",
            Self::NothingLeft => "no process, lock or lease is left; the counters are correct",
            Self::HooksNotified => "every event of a hook is delivered at least once",
            Self::NoticedSoon => "a dead worker is noticed in time",
            Self::ProblemsReported => "every problem is reported",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.code(), self.description())
    }
}
