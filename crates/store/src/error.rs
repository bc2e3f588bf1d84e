//! The errors of a store. The variants follow what a caller can do about them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Relocation;
use crate::postgres::ConnectError;
use domain::values::name::{JobId, WorkerId};
use domain::values::span::format_span;
use sys::fs::ownership::OwnershipError;
use sys::process::Holder;

/// The underlying cause of a store error.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The result of a verb, which fails for reasons of the store unless it names an error of its own.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing changed; trying later may help.
    #[error("failed to open the store at `{}`", path.display())]
    CannotOpen {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("the store could not be read or written")]
    Unavailable {
        #[source]
        source: Cause,
    },
    /// No server of a PostgreSQL store could be used.
    #[error(transparent)]
    Unreachable(#[from] Box<ConnectError>),
    #[error("the disk is full")]
    Full,
    /// Something outside the store keeps it from working; `advice` says how to remove it.
    #[error("{problem}")]
    Obstacle { problem: String, advice: &'static str },
    /// The server, or the address, keeps this process from its work until a person changes that; `advice` says how.
    #[error("{problem}")]
    NotAllowed { problem: String, advice: &'static str },
    #[error("the store is read-only")]
    ReadOnly,
    #[error("{}", busy(*waited, holder.as_ref()))]
    Busy {
        waited: Duration,
        /// The process that holds the write lock, if it can be found.
        holder: Option<Holder>,
    },
    /// The store was read without locks, because no other process seemed to use it.
    #[error("the store was being changed each time it was read")]
    Changing,
    /// The store refuses files and folders that other users own or could change.
    #[error(transparent)]
    NotOwn(#[from] OwnershipError),
    /// The commit failed, and the store cannot tell whether it took effect.
    #[error("the commit failed; it is unknown whether it took effect")]
    OutcomeUnknown {
        #[source]
        source: Cause,
    },
    #[error("the store is corrupt")]
    Corrupt {
        #[source]
        source: Cause,
    },
    #[error("`{}` {problem}", path.display())]
    NotAStore { path: PathBuf, problem: &'static str },
    /// The server is a standby, or its transactions are read-only.
    #[error("the PostgreSQL server is not the primary: nothing can be written there")]
    NotPrimary,
    #[error("the store has schema version {found}, older than the {needed} that this queuectl needs")]
    TooOld { found: i64, needed: i64 },
    #[error("the store has schema version {found}, newer than the {known} that this queuectl knows")]
    TooNew { found: i64, known: i64 },
    /// The queue is in another store.
    #[error(transparent)]
    Relocated(Relocation),
    #[error("a stored {what} is malformed: {detail}")]
    Malformed { what: &'static str, detail: String },
    #[error("the stored setting `{key}` is invalid: {detail}")]
    BadSetting { key: String, detail: String },
    #[error("there is no job `{0}`")]
    NoSuchJob(JobId),
    #[error("there is no worker `{0}`")]
    NoSuchWorker(WorkerId),
}

impl StoreError {
    /// Whether the store does not allow workers of this program, or of its role, to work.
    pub fn is_refusal_of_workers(&self) -> bool {
        matches!(self, Self::NotAllowed { .. } | Self::TooNew { .. })
    }

    /// The error of a file, or a folder, that could not be opened.
    pub(crate) fn cannot_open<E: Into<Cause>>(path: &Path) -> impl FnOnce(E) -> Self {
        |error| Self::CannotOpen { path: path.to_owned(), source: error.into() }
    }

    /// The same error of a caller that waits this long for a lock.
    pub(crate) fn after_waiting(mut self, lock_timeout: Duration) -> Self {
        if let Self::Busy { waited, .. } = &mut self {
            *waited = lock_timeout;
        }
        self
    }

    /// The error of a file that could not be read or written.
    pub fn unavailable(error: io::Error) -> Self {
        Self::Unavailable { source: error.into() }
    }
}

fn busy(waited: Duration, holder: Option<&Holder>) -> String {
    let waited = format_span(waited);
    match holder {
        Some(holder) if holder.is_stopped => {
            format!("the database was locked for {waited}: {holder} is stopped in the middle of a write")
        }
        Some(holder) => format!("the database was locked for {waited} by {holder}"),
        None => format!("the database was locked for {waited}"),
    }
}

/// Why a verb changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<R: std::error::Error> {
    #[error(transparent)]
    Store(StoreError),
    /// The request cannot be fulfilled.
    #[error(transparent)]
    Refused(R),
}

impl<R: std::error::Error> From<StoreError> for WriteError<R> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Why `enqueue` stored nothing.
pub type EnqueueError = WriteError<RefusedJob>;

/// A job that keeps its whole call from being stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RefusedJob {
    /// Its position in the call.
    pub at: usize,
    pub reason: EnqueueRefusal,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnqueueRefusal {
    #[error("there is already a job `{0}`")]
    IdTaken(JobId),
    #[error("it depends on `{0}`, which does not exist")]
    UnknownDependency(JobId),
    #[error("job `{0}` waits for itself through the jobs that it depends on")]
    Cycle(JobId),
    #[error("its delay ends after the year 9999")]
    TooLate,
}
