//! What can go wrong with a store. The variants follow what a caller can do about it.

use std::path::PathBuf;
use std::time::Duration;

use domain::values::name::{JobId, WorkerId};
use domain::values::span::format_span;
use sys::fs::ownership::OwnershipError;
use sys::process::Holder;

/// Why the store itself could not answer.
type Cause = Box<dyn std::error::Error + Send + Sync>;

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
    #[error("the disk is full")]
    Full,
    #[error("a file of the store has reached the limit of file sizes")]
    FileLimit,
    #[error("the store is read-only")]
    ReadOnly,
    #[error("{}", busy(*waited, holder.as_ref()))]
    Busy {
        waited: Duration,
        /// Who writes all the time, where that can be seen.
        holder: Option<Holder>,
    },
    /// It was read without locks, because it seemed that nobody used it.
    #[error("the store was being changed each time it was read")]
    Changing,
    #[error("`{}` is on {kind}, a network filesystem, where SQLite's locks cannot be trusted", path.display())]
    NetworkFilesystem { path: PathBuf, kind: &'static str },
    /// Nothing is made, read or written where others own something, or could change it.
    #[error(transparent)]
    NotOwn(#[from] OwnershipError),
    /// The commit failed in a way that leaves open whether it took place.
    #[error("the commit failed, and whether it took place is unknown")]
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
    #[error("the store has schema version {found}, newer than the {known} that this queuectl knows")]
    TooNew { found: i64, known: i64 },
    #[error("the SQLite library is {found}, older than the {needed} that is safe")]
    OldLibrary { found: &'static str, needed: &'static str },
    #[error("a stored {what} is malformed: {detail}")]
    Malformed { what: &'static str, detail: String },
    #[error("the stored setting `{key}` cannot be understood: {detail}")]
    BadSetting { key: String, detail: String },
    #[error("there is no job `{0}`")]
    NoSuchJob(JobId),
    #[error("there is no worker `{0}`")]
    NoSuchWorker(WorkerId),
}

fn busy(waited: Duration, holder: Option<&Holder>) -> String {
    let waited = format_span(waited);
    match holder {
        Some(holder) if holder.is_stopped => {
            format!("the store was busy for {waited}: {holder} is stopped in the middle of a write")
        }
        Some(holder) => format!("the store was busy for {waited}: {holder} is writing"),
        None => format!("the store was busy for {waited}"),
    }
}

/// Why `enqueue` stored nothing.
#[derive(Debug, thiserror::Error)]
pub enum EnqueueError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job at this place of the batch is to blame.
    #[error("{reason}")]
    Refused { at: usize, reason: Refused },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is already a job `{0}`")]
    IdTaken(JobId),
    #[error("it depends on `{0}`, and there is no such job")]
    UnknownDependency(JobId),
    #[error("job `{0}` waits for itself through the jobs that it depends on")]
    Cycle(JobId),
    #[error("its delay ends after the year 9999")]
    TooLate,
}
