//! A drain of short jobs commits far less often than it finishes jobs.
//!
//! Commits are counted as syncs of the write-ahead log, of which each needs one. How many jobs share one depends on how
//! short jobs are, by the worker's own clock; so it gets a slow one, and every machine is fast enough.

use rustix::io::Errno;

use crate::chaos::shim::{Fault, Shim, When};
use crate::engine::harness::{Home, Pool};

/// So many times slower do workers believe time to pass.
const SLOWDOWN: u64 = 30;

#[test]
fn with_sixteen_slots_at_least_six_jobs_share_a_commit() {
    // It was 0.03 to 0.06, and 0.18 to 0.25 without claims ahead of free slots.
    let commits = commits_per_job(2_000, 16);
    assert!(commits < 0.15, "{commits} commits for each job");
}

#[test]
fn with_four_slots_at_least_three_jobs_share_a_commit() {
    // It was 0.12 to 0.19, and 0.67 without claims ahead of free slots.
    let commits = commits_per_job(1_000, 4);
    assert!(commits < 0.3, "{commits} commits for each job");
}

/// How often a worker with so many slots commits until all jobs are done, from its first turn to its end.
fn commits_per_job(jobs: u32, slots: u32) -> f64 {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(jobs as usize);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    let shim = Shim::new(&home);
    shim.slow_clock(SLOWDOWN);
    shim.only("queue.db-wal");
    shim.fails(Fault::Sync, Errno::IO, When::Nth(u64::MAX));
    let slots = slots.to_string();
    let call = home.call(["worker", "run", "-q", "--until-empty", "--concurrency", &slots]);
    Pool::spawn(&home, call.envs(shim.variables()).interruptible().into_command()).ends_well();
    let counts = home.run(["status", "--json"]).ok().json();
    assert_eq!(counts["jobs"]["completed"], jobs, "all are done: {counts}");
    let commits = u32::try_from(shim.seen(Fault::Sync)).expect("a small number");
    assert!(commits > 0, "commits are seen");
    f64::from(commits) / f64::from(jobs)
}
