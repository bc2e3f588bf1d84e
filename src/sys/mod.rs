//! What only the operating system can do: clocks, locks, files, processes, signals, users.
//!
//! Safe wrappers, and the only place where `unsafe` is allowed. It knows nothing of jobs.

pub mod bell;
pub mod brand;
pub mod c_list;
pub mod cgroup;
pub mod clock;
pub mod disk;
pub mod failpoint;
pub mod hole;
pub mod host;
pub mod interrupts;
pub mod last_error;
pub mod life_line;
pub mod limit;
pub mod load;
pub mod lock;
pub mod ownership;
mod peak;
pub mod private;
pub mod process;
pub mod range_lock;
pub mod sabotage;
pub mod signal;
mod signal_set;
pub mod spawn;
pub mod tree;
pub mod user;
pub mod zone;
