//! The invariants.

use std::fmt;

domain::named_enum! {
    /// Each is named as in the documentation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Invariant {
        NoneLost = "I1",
        NoneInvented = "I2",
        Terminal = "I3",
        OneSuccess = "I4",
        StartedOnce = "I5",
        NoOverlap = "I6",
        NoGaps = "I7",
        RealOutcome = "I8",
        NotTooEarly = "I9",
        CancelHolds = "I10",
        WithinLimits = "I11",
        Fenced = "I12",
        NothingLeft = "I13",
        HooksNotified = "I14",
        NoticedSoon = "P4",
        ProblemsReported = "P5",
    }
}

impl Invariant {
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
        write!(out, "{} ({})", self.name(), self.description())
    }
}
