//! Copies of the whole queue.
//!
//! - `copy` writes one: the database page by page from one view of it, then the log files.
//! - `log_files` is the table of a backup that holds these.
//! - `incoming` makes a queue of a backup, beside the queue whose place it is to take; `lost` is what had been
//!   running; `restore` puts it there, and `restored_logs` the log files.
//!
//! A backup is an ordinary database in one file, with a schema version like any other, so an older one is migrated like
//! any other.

mod copy;
mod incoming;
mod log_files;
mod lost;
mod restore;
mod restored_logs;

pub(super) use copy::copy;
pub use incoming::Incoming;
pub(super) use lost::lose_all;
pub(super) use restored_logs::{are_any_ready, put as put_restored_logs};
