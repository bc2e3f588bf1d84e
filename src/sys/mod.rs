//! What only the operating system can do: clocks, locks, files, users, signals.
//!
//! Safe wrappers, and the only place where `unsafe` is allowed. It knows nothing of jobs.

pub mod clock;
pub mod disk;
pub mod lock;
pub mod private;
pub mod signal;
pub mod user;
