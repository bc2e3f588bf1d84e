//! PostgreSQL as the place of a queue: the way to a server, and the commands that concern one.
//!
//! Each test starts a server of its own in a temporary folder: it needs settings, certificates or failures that other
//! tests must not see.

#[cfg(debug_assertions)] // Only a debug build has machine ids of a test.
mod clock;
pub(crate) mod cluster;
mod connect;
mod failover;
mod full_disk;
mod full_log_disk;
mod grant;
mod idle;
mod lost_tail;
pub(crate) mod pooler;
mod retention;
mod secrecy;
mod server_faults;
pub(crate) mod small_disk;
mod store_verbs;
mod working_machine;
