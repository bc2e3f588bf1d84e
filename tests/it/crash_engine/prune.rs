//! FAULTS 26: a crash at each fail-point of a pruning round. No job is partially deleted, and the next round deletes
//! the rest.

use std::fs;

use super::harness::CrashHome;
use super::processes::wait;
use crate::store::fixture::Fixture;

#[test]
fn fault_26_a_worker_that_dies_while_pruning_deletes_nothing_else() {
    for point in [
        "prune.before_commit",
        "prune.after_commit",
        "environment_gc.before_commit",
        "environment_gc.after_commit",
    ] {
        let crash_home = CrashHome::new();
        for id in ["a", "b"] {
            crash_home.job(id, "sleep 0.6; seq 1 3000");
        }
        crash_home.run(&["worker", "run", "-q", "--until-empty", "--concurrency", "2"]).ok();
        // In a different environment, so that no job uses that of the others in the end.
        let kept = ["enqueue", "-q", "--id", "kept", "--delay", "1h", "--", "true"];
        crash_home.home.call(kept).env("OTHER", "yes").run().ok();
        crash_home.set("retain_completed", "0");
        crash_home.pool_dying_at(point, &[]);
        wait(&format!("the worker dies at {point}"), || crash_home.has_died());
        crash_home.run(&["prune", "-q"]).ok();
        assert_eq!(crash_home.ids(), ["kept"], "{point}");
        let logs = fs::read_dir(crash_home.home.path().join("logs")).map_or(0, Iterator::count);
        assert_eq!(logs, 0, "{point}: log files are left");
        crash_home.stop_pools();
        Fixture::sqlite_in(&crash_home.home.path()).recount();
    }
}
