//! Injects faults of disk and clock into running processes: a preloaded C library (`shim.c`) that wraps functions of the C
//! library, and the handle with which a test switches faults on and off.
//!
//! ```ignore
//! let shim = Shim::new(&home);
//! shim.sync_fails(Errno::IO, When::Always);
//! home.call(["enqueue", "--", "true"]).envs(shim.variables()).run().fails(6);
//! assert!(shim.struck(Fault::Sync) > 0);
//! shim.heal();
//! ```
//!
//! Faults affect only regular files and folders below the home, and only in processes whose environment has the variables.
//! A supervisor passes them on to its workers. Jobs have the environment of the `enqueue` that stored them.

mod control;
mod handle;
mod library;
mod tests;

pub(crate) use control::{Fault, When};
pub(crate) use handle::Shim;
