//! What queuectl can do: one use-case per file, shared by every surface.
//!
//! No SQL and no printing here.

pub mod alive;
pub mod announce;
pub mod attend;
pub mod backup;
pub mod batch;
pub mod bulk;
pub mod change;
pub mod columns;
pub mod config;
pub mod dlq;
pub mod doctor;
pub mod each;
pub mod edit;
pub mod enqueue;
pub mod error;
pub mod events;
pub mod explain;
pub mod follow;
pub mod hook;
pub mod init;
pub mod inside;
pub mod json;
pub mod lines;
pub mod list;
pub mod location;
pub mod log_reader;
pub mod logs;
pub mod ownership;
pub mod problem;
pub mod prune;
pub mod queues;
pub mod restore;
pub mod schedule;
pub mod schedule_json;
pub mod spooled;
pub mod status;
pub mod stop;
pub mod throughput;
pub mod transfer;
pub mod wait;
pub mod watch;

pub use error::OpError;

pub use crate::domain::escape;
