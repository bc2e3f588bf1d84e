//! The store on one machine: a SQLite file in WAL mode.
//!
//! - `open` checks the file, `migrate` brings its schema up to date, `store` has the verbs, `tx` is one transaction.
//! - Each other file holds the statements of one verb or one table.
//!
//! **Many processes, one writer.** SQLite's own lock is unfair: some processes starve. Every write therefore first
//! passes the gate (`gate`), a file lock that the kernel grants in turn; inside it, `begin immediate` meets no
//! contention. Nothing slow happens inside the gate: checkpoints run after it.
//!
//! **Never open the database file by other means in this process**: closing any descriptor of it drops SQLite's locks.

mod backup;
mod jobs;
mod recount;
pub(crate) mod session;
mod store;
pub(crate) mod tables;
mod transfer;
pub(crate) mod verbs;
pub(crate) mod views;

pub use backup::IncomingBackup;
pub use session::examine::{Depth, Examination, examine};
pub use session::gate::{is_initialized, path as gate_path};
pub use session::migrate::SCHEMA_VERSION;
pub use session::open::check_files;
pub use store::SqliteStore;
