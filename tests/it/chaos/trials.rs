//! Trials: random damage by one nemesis each, and the checker's verdict (`crates/proof/src/`).
//!
//! A few seeds of each are part of every run of the tests. `tests/chaos` runs them for as long as one likes.

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

#[cfg(debug_assertions)] // Released builds have no guards that can be taken away.
mod controls;
