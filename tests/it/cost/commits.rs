//! A drain of short jobs commits far less often than it finishes jobs.
//!
//! Commits are counted as syncs of the write-ahead log: each commit needs one. How many jobs share a commit depends on
//! how short jobs are by the worker's own clock; the test gives it a slow clock, so that every machine is fast enough.

use rustix::io::Errno;

use crate::chaos::shim::{Fault, Shim, When};
use crate::engine::harness::{Home, Pool};

/// The factor by which the worker's clock is slowed down.
const CLOCK_SLOWDOWN: u64 = 30;

#[test]
fn with_sixteen_slots_at_least_six_jobs_share_a_commit() {
    // Measured: 0.03 to 0.06, and 0.18 to 0.25 without prefetch.
    let commits = commits_per_job(2_000, 16);
    assert!(commits < 0.15, "{commits} commits per job");
}

#[test]
fn with_four_slots_at_least_three_jobs_share_a_commit() {
    // Measured: 0.12 to 0.19, and 0.67 without prefetch.
    let commits = commits_per_job(1_000, 4);
    assert!(commits < 0.3, "{commits} commits per job");
}

/// The commits per job of a worker with this number of slots, from its first exchange to its exit.
fn commits_per_job(jobs: u32, slots: u32) -> f64 {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(jobs as usize);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    let shim = Shim::new(&home);
    shim.slow_clock(CLOCK_SLOWDOWN);
    shim.only("queue.db-wal");
    shim.fails(Fault::Sync, Errno::IO, When::Nth(u64::MAX));
    let slots = slots.to_string();
    let call = home.call(["worker", "run", "-q", "--until-empty", "--concurrency", &slots]);
    Pool::spawn(&home, call.envs(shim.variables()).interruptible().into_command()).ends_well();
    let counts = home.run(["status", "--json"]).ok().json();
    assert_eq!(counts["jobs"]["completed"], jobs, "all jobs are completed: {counts}");
    let commits = u32::try_from(shim.seen(Fault::Sync)).expect("a small number");
    assert!(commits > 0, "the shim counts commits");
    f64::from(commits) / f64::from(jobs)
}
