//! Faults of disk and clock on demand, for processes that run already: a library in C (`shim.c`) that steps between
//! a program and the C library, and the handle with which a test switches faults on and off.
//!
//! ```ignore
//! let shim = Shim::new(&home);
//! shim.sync_fails(Errno::IO, When::Always);
//! home.call(["enqueue", "--", "true"]).envs(shim.variables()).run().fails(6);
//! assert!(shim.struck(Fault::Sync) > 0);
//! shim.heal();
//! ```
//!
//! Only regular files and folders below the home are struck, and only in a process whose environment has the variables.
//! A supervisor hands them on to its workers. Jobs have the environment of the `enqueue` that asked for them.

mod control;
mod handle;
mod library;
mod tests;

pub(crate) use control::{Fault, When};
pub(crate) use handle::Shim;
