//! What only the operating system can do: clocks, locks, files, processes, signals, users.
//!
//! Safe wrappers, and the only place where `unsafe` is allowed. It knows nothing of jobs.

pub mod bell;
pub mod cgroup;
pub mod clock;
pub mod failpoint;
pub mod fs;
pub mod guards;
pub mod host;
pub mod last_error;
pub mod process;
pub mod signal;
pub mod zone;
