//! What queuectl knows about jobs: values and decisions.
//!
//! Nothing here does IO, reads a clock or rolls dice: time arrives as `now`, randomness as a number.
//! [`life::transition`] decides every change of a job's state.

pub mod backoff;
pub mod batch;
pub mod cause;
pub mod day;
pub mod edit;
pub mod environment;
pub mod error_line;
pub mod escape;
pub mod eta;
pub mod explain;
pub mod graph;
pub mod hook;
pub mod hostile;
pub mod job;
pub mod job_json;
pub mod life;
pub mod limits;
pub mod log;
pub mod name;
pub mod nearest;
pub mod outcome;
pub mod pattern;
pub mod rate;
pub mod request;
pub mod retry_rules;
pub mod schedule;
pub mod settings;
pub mod shell;
pub mod signal;
pub mod size;
pub mod span;
pub mod template;
pub mod timestamp;
pub mod unique;
