//! The targets: each module has `run`, which asserts what holds for any bytes, and `TOKENS`, of which such bytes are made.

pub mod backoff;
pub mod config_file;
pub mod cron_line;
pub mod error_line;
mod file;
pub mod hostile;
pub mod job_json;
pub mod job_lines;
pub mod log;
pub mod log_file;
mod message;
pub mod name;
mod numbers;
pub mod setting;
pub mod shell;
pub mod size;
pub mod span;
pub mod timestamp;
