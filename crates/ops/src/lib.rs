//! The use cases of queuectl, one per file, shared by every interface. This layer contains no SQL and prints nothing.

pub mod config;
pub mod doctor;
pub mod error;
pub mod events;
pub mod home;
pub mod hook;
pub mod jobs;
pub mod json;
pub mod metrics;
pub mod queues;
pub mod schedule;
pub mod status;
pub mod summary;
pub mod upcoming;
pub mod upkeep;
pub mod worker;

pub use error::OpError;

pub use domain::text::escape;
