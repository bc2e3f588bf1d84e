//! Guards: what fails when the shape of a cost changes, without a clock.
//!
//! A benchmark says how long something takes on one machine on one day. These count what it consists of: rows that are
//! walked over, commits, files, processes, calls of the system. That is the same on every machine, so a bound on it can
//! stand in a test. Each bound is a little above what was counted when it was written; whoever has a good reason to
//! exceed one changes it, and says why.

#[cfg(debug_assertions)] // Released builds are linked statically: no library can step in.
mod commits;
mod dependents;
mod enqueue;
#[cfg(debug_assertions)]
mod files;
mod graphs;
mod hooks;
mod idle;
mod one_shot;
mod page_faults;
mod plans;
#[cfg(debug_assertions)]
mod portions;
mod prune;
mod scenario;
mod selection;
mod steps;
mod strace;
mod tape;
