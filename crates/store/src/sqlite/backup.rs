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
pub(super) use lost::lose_all;
pub(super) use restored_logs::{any_staged, put_in_place as put_restored_logs};
