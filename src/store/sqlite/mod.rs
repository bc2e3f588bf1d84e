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
mod batches;
mod cancel;
mod change;
mod checkpoint;
mod claim;
mod counters;
mod cut;
mod deliveries;
mod dependencies;
mod duties;
mod edit;
mod enqueue;
mod environments;
mod error;
mod events;
mod examine;
mod exchange;
mod extend;
mod find;
mod fire;
mod gate;
mod graph;
mod history;
mod hooks;
mod idle;
mod jobs;
mod leases;
mod list;
mod migrate;
mod news;
mod open;
mod orders;
mod outlook;
mod picture;
mod places;
mod prune;
mod queues;
mod rates;
mod read_only;
mod reap;
mod recount;
mod remove;
mod retry;
mod retry_rules;
mod rooms;
mod row;
mod runs;
mod schedules;
mod settings;
mod settle;
mod situation;
mod stops;
mod store;
mod sweep;
mod transfer;
mod troubles;
mod tx;
mod unique_keys;
mod unkillable;
mod workers;

pub use backup::Incoming;
pub use examine::{Depth, Examination, examine};
pub use gate::{path as gate_path, remembers_a_queue};
pub use migrate::SCHEMA_VERSION;
pub use open::check_files;
pub use store::SqliteStore;
