//! How an attempt ended.

use std::fmt;

mod error_line;

pub use self::error_line::{MAX_ERROR_BYTES, error_line, exceeded_limit_line, reports_exceeded_limit};
use crate::values::signal::Signal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command exited with 0.
    Success,
    /// The command exited with another code.
    Failure { exit_code: i32 },
    /// A signal ended the command: one that queuectl did not send, or SIGKILL for exceeding a limit.
    Signal { signal: Signal },
    /// The command ran longer than its timeout and was killed.
    Timeout,
    /// The command could not be started.
    SpawnError,
    /// The worker died during the attempt.
    Lost,
    /// The attempt was cancelled.
    Cancelled,
    /// Given back unharmed, by a shutdown or because the command was never started.
    Released,
}

crate::named_enum! {
    /// How an attempt ended, without the details.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum OutcomeName {
        Success = "success",
        Failure = "failure",
        Signal = "signal",
        Timeout = "timeout",
        SpawnError = "spawn_error",
        Lost = "lost",
        Cancelled = "cancelled",
        Released = "released",
    }
}

impl OutcomeName {
    /// Whether the attempt ended for another reason than its command.
    pub fn is_interrupted(self) -> bool {
        match self {
            Self::Lost | Self::Cancelled | Self::Released => true,
            Self::Success | Self::Failure | Self::Signal | Self::Timeout | Self::SpawnError => false,
        }
    }
}

impl Outcome {
    /// The name used in SQL and JSON.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    pub fn kind(self) -> OutcomeName {
        match self {
            Self::Success => OutcomeName::Success,
            Self::Failure { .. } => OutcomeName::Failure,
            Self::Signal { .. } => OutcomeName::Signal,
            Self::Timeout => OutcomeName::Timeout,
            Self::SpawnError => OutcomeName::SpawnError,
            Self::Lost => OutcomeName::Lost,
            Self::Cancelled => OutcomeName::Cancelled,
            Self::Released => OutcomeName::Released,
        }
    }

    /// Combines the stored parts of an outcome.
    pub fn from_parts(name: &str, exit_code: Option<i32>, signal: Option<Signal>) -> Option<Self> {
        Some(match (OutcomeName::from_name(name)?, exit_code, signal) {
            (OutcomeName::Success, ..) => Self::Success,
            (OutcomeName::Failure, exit_code, _) => Self::Failure { exit_code: exit_code? },
            (OutcomeName::Signal, _, signal) => Self::Signal { signal: signal? },
            (OutcomeName::Timeout, ..) => Self::Timeout,
            (OutcomeName::SpawnError, ..) => Self::SpawnError,
            (OutcomeName::Lost, ..) => Self::Lost,
            (OutcomeName::Cancelled, ..) => Self::Cancelled,
            (OutcomeName::Released, ..) => Self::Released,
        })
    }

    pub fn exit_code(self) -> Option<i32> {
        match self {
            Self::Success => Some(0),
            Self::Failure { exit_code } => Some(exit_code),
            Self::Signal { .. }
            | Self::Timeout
            | Self::SpawnError
            | Self::Lost
            | Self::Cancelled
            | Self::Released => None,
        }
    }

    pub fn signal(self) -> Option<Signal> {
        match self {
            Self::Signal { signal } => Some(signal),
            Self::Success
            | Self::Failure { .. }
            | Self::Timeout
            | Self::SpawnError
            | Self::Lost
            | Self::Cancelled
            | Self::Released => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => out.write_str("success"),
            Self::Failure { exit_code } => write!(out, "exit code {exit_code}"),
            Self::Signal { signal } => write!(out, "killed by {signal}"),
            Self::Timeout => out.write_str("timed out"),
            Self::SpawnError => out.write_str("could not be started"),
            Self::Lost => out.write_str("its worker died"),
            Self::Cancelled => out.write_str("cancelled"),
            Self::Released => out.write_str("released"),
        }
    }
}
