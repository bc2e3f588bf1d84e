//! Copies of the whole queue.
//!
//! - `copy` writes a backup: the database page by page in one snapshot, then the log files.
//! - `log_files` is the table of a backup that holds the log files.
//! - `incoming` prepares a backup next to the queue that it will replace; `lost` handles the attempts that were
//!   running; `restore` replaces the queue, and `restored_logs` the log files.
//!
//! A backup is an ordinary database in one file with a schema version, so an older one is migrated like any other.

mod copy;
mod incoming;
mod log_files;
mod lost;
mod restore;
mod restored_logs;

pub(super) use copy::copy;
pub use incoming::IncomingBackup;
pub(super) use restored_logs::{any_staged, put_in_place as put_restored_logs};

use std::path::{Path, PathBuf};

use crate::StoreError;

/// The destination of a backup, and the log files that it includes.
#[derive(Clone, Copy, Debug)]
pub struct Backup<'a> {
    /// An empty file.
    pub to: &'a Path,
    /// The folder of log files.
    pub logs: &'a Path,
}

/// The progress of a long operation, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// The result of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSummary {
    pub jobs: u64,
    /// Attempts that were running when the backup was made.
    pub lost: u64,
    /// Where the previous queue is kept, if it held any jobs.
    pub kept: Option<PathBuf>,
}

/// The reason why a restore did nothing.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{}", alive(*count))]
    Workers { count: usize },
    #[error("another restore is in progress")]
    UnderWay,
    /// The backup cannot be used.
    #[error("the backup `{}` cannot be used; nothing was changed", path.display())]
    BadBackup {
        path: PathBuf,
        #[source]
        source: StoreError,
    },
}

fn alive(count: usize) -> String {
    if count == 1 {
        "a worker is running on this queue".to_owned()
    } else {
        format!("{count} workers are running on this queue")
    }
}
