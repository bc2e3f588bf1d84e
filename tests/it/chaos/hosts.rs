//! Trials with several hosts and a queue on a PostgreSQL server.
//!
//! A test run tries a short mix. `tests/chaos --hosts` runs every scenario for a given time and prints a table.

mod backends;
mod clock;
mod controls;
mod failover;
mod full_disk;
mod harness;
mod migration;
mod namespaces;
mod network;
mod pooler;
mod scenarios;
mod servers;

use harness::{Figures, long_run, requested_seconds};
use scenarios::{every_scenario, short_mix};

#[test]
fn fault_37_chaos_hosts() {
    let results = match requested_seconds() {
        Some(seconds) => long_run(&every_scenario(), seconds),
        None => harness::run_each_once(&short_mix()),
    };
    println!("{}", harness::table(&results));
    for (name, Figures { strikes, violations, .. }) in &results {
        assert!(violations.is_empty(), "{name}:\n{}", violations.join("\n"));
        assert!(*strikes > 0, "{name}: no fault took effect, so the trials prove nothing");
    }
}
