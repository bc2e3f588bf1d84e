//! The targets. Each module has `run`, which asserts properties that hold for any bytes, and `TOKENS`, the fragments of
//! new inputs.

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
