//! What must hold, by name.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    Kept,
    Wanted,
    Terminal,
    OneSuccess,
    StartedOnce,
    NoOverlap,
    NoGaps,
    RealOutcome,
    InTime,
    CancelHolds,
    WithinLimits,
    Fenced,
    NothingLeft,
    Heard,
    NoticedSoon,
    Told,
}

impl Invariant {
    pub const ALL: [Self; 16] = [
        Self::Kept,
        Self::Wanted,
        Self::Terminal,
        Self::OneSuccess,
        Self::StartedOnce,
        Self::NoOverlap,
        Self::NoGaps,
        Self::RealOutcome,
        Self::InTime,
        Self::CancelHolds,
        Self::WithinLimits,
        Self::Fenced,
        Self::NothingLeft,
        Self::Heard,
        Self::NoticedSoon,
        Self::Told,
    ];

    /// The short name that documents use.
    pub fn code(self) -> &'static str {
        match self {
            Self::Kept => "I1",
            Self::Wanted => "I2",
            Self::Terminal => "I3",
            Self::OneSuccess => "I4",
            Self::StartedOnce => "I5",
            Self::NoOverlap => "I6",
            Self::NoGaps => "I7",
            Self::RealOutcome => "I8",
            Self::InTime => "I9",
            Self::CancelHolds => "I10",
            Self::WithinLimits => "I11",
            Self::Fenced => "I12",
            Self::NothingLeft => "I13",
            Self::Heard => "I14",
            Self::NoticedSoon => "P4",
            Self::Told => "P5",
        }
    }

    /// What it says.
    pub fn says(self) -> &'static str {
        match self {
            Self::Kept => "every acknowledged job exists",
            Self::Wanted => "nothing exists that nobody asked for",
            Self::Terminal => "after healing every job comes to an end",
            Self::OneSuccess => "at most one success is recorded, and it is a real one",
            Self::StartedOnce => "an attempt starts at most once",
            Self::NoOverlap => "attempts of one job do not overlap",
            Self::NoGaps => "attempt numbers have no gaps and stay within the policy",
            Self::RealOutcome => "the recorded exit code or signal is the real one",
            Self::InTime => "no attempt starts before its time or its dependencies allow",
            Self::CancelHolds => "nothing starts after an acknowledged cancel",
            Self::WithinLimits => "never more run than slots, queues, rates, keys and schedules allow",
            Self::Fenced => "no result was written by an attempt that was not current",
            Self::NothingLeft => "nothing is left: no process, no lock, no lease; the counters are right",
            Self::Heard => "hooks are told of everything that they are for, at least once",
            Self::NoticedSoon => "a dead worker is noticed in time",
            Self::Told => "what is wrong is told",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.code(), self.says())
    }
}
