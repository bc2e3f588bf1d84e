//! How an attempt ended.

use std::fmt;

pub use super::error_line::{error_line, exceeded_limit_line};
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

impl Outcome {
    /// The name used in SQL and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure { .. } => "failure",
            Self::Signal { .. } => "signal",
            Self::Timeout => "timeout",
            Self::SpawnError => "spawn_error",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
            Self::Released => "released",
        }
    }

    /// Combines the stored parts of an outcome.
    pub fn from_parts(name: &str, exit_code: Option<i32>, signal: Option<Signal>) -> Option<Self> {
        Some(match (name, exit_code, signal) {
            ("success", ..) => Self::Success,
            ("failure", Some(exit_code), _) => Self::Failure { exit_code },
            ("signal", _, Some(signal)) => Self::Signal { signal },
            ("timeout", ..) => Self::Timeout,
            ("spawn_error", ..) => Self::SpawnError,
            ("lost", ..) => Self::Lost,
            ("cancelled", ..) => Self::Cancelled,
            ("released", ..) => Self::Released,
            _ => return None,
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
