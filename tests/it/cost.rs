//! Tests that bound costs without a clock.
//!
//! A benchmark measures time on one machine on one day. These tests count operations instead: rows scanned, commits,
//! files, processes, system calls. The counts are the same on every machine, so a test can bound them. Each bound is a
//! little above the count at the time of writing; a commit that raises one must say why.

// Release builds are linked statically, so the preloaded shim cannot intercept calls.
#[cfg(debug_assertions)]
mod bulk;
mod commits;
mod dependents;
mod enqueue;
#[cfg(debug_assertions)]
mod files;
mod graphs;
mod hooks;
mod idle;
mod one_shot;
mod overview;
mod page_faults;
mod plans;
#[cfg(debug_assertions)]
mod portions;
mod prune;
mod scenario;
mod selection;
// Release builds are static, and need no loader.
#[cfg(all(debug_assertions, target_env = "gnu"))]
mod start;
mod steps;
mod strace;
mod tape;
