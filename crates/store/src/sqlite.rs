//! The store on one machine: a SQLite file in WAL mode.
//!
//! - `session`: opening and checking the files, the gate, migrations, checkpoints, statements.
//! - `store` implements [`crate::Store`]; `crate::rows` has the verbs.
//! - `wake`: the FIFOs that wake workers. `backup`: copying and restoring the file.
//!
//! **Many processes, one writer.** SQLite's own lock is unfair: some processes starve. Every write therefore first
//! passes the gate (`gate`), a file lock that the kernel grants in turn; inside it, `begin immediate` meets no
//! contention. Nothing slow happens inside the gate: checkpoints run after it.
//!
//! **Never open the database file by other means in this process**: closing any descriptor of it drops SQLite's locks.

mod backup;
pub(crate) mod session;
mod store;
mod wake;

pub use backup::{Backup, IncomingBackup, Progress, RestoreError, RestoreSummary};
pub use session::examine::{Depth, Examination, examine};
pub use session::gate::{GATE_TIMEOUT, is_initialized, path as gate_path};
pub use session::migrate::SCHEMA_VERSION;
pub use session::open::{check_files, network_filesystem};
pub use store::SqliteStore;
