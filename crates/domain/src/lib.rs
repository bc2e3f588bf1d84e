//! The domain of queuectl: values and decisions about jobs, queues, schedules and hooks.
//!
//! This layer does no IO, reads no clock and uses no random numbers: time arrives as `now`, randomness as a number.
//! [`job::life::transition`] decides every change of a job's state.

pub mod batch;
pub mod explain;
pub mod hook;
pub mod job;
mod json;
pub mod log;
pub mod metrics;
pub mod plan;
pub mod queue;
pub mod schedule;
pub mod settings;
pub mod text;
pub mod values;

#[doc(hidden)]
pub use serde;
