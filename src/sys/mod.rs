//! What only the operating system can do: clocks, locks, bells, files, users, signals.
//!
//! Safe wrappers, and the only place where `unsafe` is allowed. It knows nothing of jobs.

pub mod bell;
pub mod clock;
pub mod disk;
pub mod failpoint;
pub mod hole;
pub mod interrupts;
pub mod lock;
pub mod private;
pub mod signal;
pub mod user;
