//! What queuectl can do: one use-case per file, shared by every surface.
//!
//! No SQL and no printing here.

pub mod config;
pub mod doctor;
pub mod error;
pub mod events;
pub mod home;
pub mod hook;
pub mod jobs;
pub mod json;
pub mod queues;
pub mod schedule;
pub mod status;
pub mod upkeep;
pub mod worker;

pub use error::OpError;

pub use domain::text::escape;
