//! The operating system: clocks, locks, files, processes, signals and users.
//!
//! Safe wrappers, and the only place where `unsafe` is allowed. This layer knows nothing about jobs.

pub mod bell;
pub mod cgroup;
pub mod clock;
pub mod failpoint;
pub mod fs;
pub mod guards;
pub mod host;
pub mod keyboard;
pub mod last_error;
pub mod poll;
pub mod process;
pub mod program;
pub mod service_manager;
pub mod signal;
mod unwind;
pub mod zone;
