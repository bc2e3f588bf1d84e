//! The store on one machine: a SQLite file in WAL mode.
//!
//! - `open` checks the file, `migrate` brings its schema up to date, `store` has the verbs, `tx` is one transaction.
//! - Each other file holds the statements of one verb or one table.
//!
//! **Many processes, one writer.** SQLite's own waiting is unfair: some processes starve. Every write therefore first
//! passes the gate (`gate`), a file lock that the kernel hands on in turn; inside it `begin immediate` finds nobody.
//! Nothing slow happens inside the gate: checkpoints run after it.
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

pub use backup::Incoming;
pub use session::examine::{Depth, Examination, examine};
pub use session::gate::{path as gate_path, remembers_a_queue};
pub use session::migrate::SCHEMA_VERSION;
pub use session::open::check_files;
pub use store::SqliteStore;
