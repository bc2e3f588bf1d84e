//! What a failed request means: for the caller, and for the session.

use std::time::Duration;

use tokio_postgres::error::{DbError, Severity, SqlState};

use super::{Health, OF_POOLERS};
use crate::StoreError;
use domain::values::span::format_span;

/// Why a request has no answer, or a bad one.
#[derive(Debug)]
pub(in crate::postgres) enum Failure {
    Driver {
        error: tokio_postgres::Error,
        /// How long the statement would have waited for a lock.
        lock_timeout: Duration,
    },
    TimedOut(Duration),
}

impl Failure {
    pub(in crate::postgres) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Driver { error, .. } => error.code(),
            Self::TimedOut(_) => None,
        }
    }

    pub(in crate::postgres) fn health(&self) -> Health {
        match self {
            Self::TimedOut(_) => Health::Broken,
            Self::Driver { error, .. } => error.as_db_error().map_or(Health::Broken, health_after),
        }
    }

    /// The same for a commit: unless the server has refused it, it may have taken effect.
    pub(in crate::postgres) fn of_commit(self) -> StoreError {
        match self.health() {
            Health::Broken => StoreError::OutcomeUnknown { source: self.cause().into() },
            Health::Fit | Health::Aborted | Health::Conflict => self.into(),
        }
    }

    /// One line. The server's details are left out: they can quote the rows of a job.
    fn cause(&self) -> String {
        match self {
            Self::TimedOut(after) => format!("the server has not answered within {}", format_span(*after)),
            Self::Driver { error, .. } => match error.as_db_error() {
                Some(refusal) => {
                    format!("the server says: {} ({})", refusal.message(), refusal.code().code())
                }
                None => format!("the connection to the server is lost: {}", chain(error)),
            },
        }
    }
}

fn health_after(refusal: &DbError) -> Health {
    match refusal.parsed_severity() {
        Some(Severity::Fatal | Severity::Panic) => Health::Broken,
        _ if is_conflict(refusal.code()) => Health::Conflict,
        _ => Health::Aborted,
    }
}

fn is_conflict(code: &SqlState) -> bool {
    *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || OF_POOLERS.contains(code)
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let cause = failure.cause();
        let Failure::Driver { error, lock_timeout } = &failure else {
            return Self::Unavailable { source: cause.into() };
        };
        let Some(code) = error.code() else {
            return Self::Unavailable { source: cause.into() };
        };
        match *code {
            SqlState::DISK_FULL => Self::Obstacle {
                problem: "the disk of the PostgreSQL server is full".to_owned(),
                advice: "free some space on the server, then try again; its log names the file",
            },
            SqlState::READ_ONLY_SQL_TRANSACTION => Self::NotPrimary,
            SqlState::LOCK_NOT_AVAILABLE => Self::Busy { waited: *lock_timeout, holder: None },
            SqlState::INSUFFICIENT_PRIVILEGE => Self::NotAllowed {
                problem: cause,
                advice: "grant the role its rights on the schema of the queue, or use another role",
            },
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Self::Corrupt { source: cause.into() },
            _ => match &code.code()[..2] {
                // A constraint is violated.
                "23" => Self::Corrupt { source: cause.into() },
                // A value that the server cannot store, such as text with a NUL.
                "22" => Self::Malformed { what: "value", detail: cause },
                _ => Self::Unavailable { source: cause.into() },
            },
        }
    }
}

/// The error of the driver with its reason.
fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
