//! Trials: random faults by one nemesis each, and the verdict of the checker (`crates/proof/src/`).
//!
//! Every test run tries a few seeds of each. `tests/chaos` runs them for a given time.

mod built_in;
mod containers;
mod graphs;
mod harness;
mod other_rights;

#[cfg(debug_assertions)]
mod clock;
#[cfg(debug_assertions)]
mod disk;
mod file_size;

#[cfg(debug_assertions)] // Release builds have no guards that can be disabled.
pub(super) mod controls;
