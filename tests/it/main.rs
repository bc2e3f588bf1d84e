//! Everything that is tested from outside: the store through its trait, the program through its command line, the
//! engine through its parts, the source through its imports.

#![expect(
    unreachable_pub,
    reason = "a test binary exports nothing, so `pub` can only mean `for the other modules`"
)]

mod bench;
mod chaos;
mod cli;
mod contrib;
mod cost;
mod crash_engine;
mod dependencies;
mod docs;
mod engine;
mod faults;
mod folder_snapshot;
mod fuzz;
mod packages;
mod postgres;
#[cfg(debug_assertions)]
// Released builds are linked statically, so nothing can stand between them and the system.
mod power;
mod shell;
mod store;
mod tidy;
#[cfg(feature = "dashboard")]
mod web;

/// The root of the repository: this package is in `crates/cli`.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
