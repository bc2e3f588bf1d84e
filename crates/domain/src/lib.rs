//! What queuectl knows about jobs: values and decisions.
//!
//! Nothing here does IO, reads a clock or rolls dice: time arrives as `now`, randomness as a number.
//! [`job::life::transition`] decides every change of a job's state.

pub mod batch;
pub mod explain;
pub mod hook;
pub mod job;
pub mod log;
pub mod queue;
pub mod schedule;
pub mod settings;
pub mod text;
pub mod values;
