//! Keeping a queue small, and copying it.
//!
//! `prune` takes every step of the store's retention pass at once; a worker takes a few steps at each tick. `backup` copies
//! the database from one read snapshot. `restore` examines and migrates the copy next to the queue, then writes its pages
//! over those of the queue in one transaction, so that no process has to open the database again. `export`
//! writes a whole queue as JSON lines, and `import` takes them in; `copy`
//! does both at once to move a queue. `spooled_writer` buffers output in an unnamed file, so
//! that a slow reader of an export does not keep the read snapshot open.

pub mod backup;
pub mod copy;
pub mod export;
pub mod import;
pub mod migrate;
pub mod prune;
pub mod restore;
pub mod spooled_writer;
pub mod store_info;
