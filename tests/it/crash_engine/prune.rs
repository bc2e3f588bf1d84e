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
        let ground = CrashHome::new();
        for id in ["a", "b"] {
            ground.job(id, "sleep 0.6; seq 1 3000");
        }
        ground.run(&["worker", "run", "-q", "--until-empty", "--concurrency", "2"]).ok();
        // In a different environment, so that no job uses that of the others in the end.
        let kept = ["enqueue", "-q", "--id", "kept", "--delay", "1h", "--", "true"];
        ground.home.call(kept).env("OTHER", "yes").run().ok();
        ground.set("retain_completed", "0");
        ground.pool_dying_at(point, &[]);
        wait(&format!("the worker dies at {point}"), || ground.has_died());
        ground.run(&["prune", "-q"]).ok();
        assert_eq!(ground.ids(), ["kept"], "{point}");
        let logs = fs::read_dir(ground.home.path().join("logs")).map_or(0, Iterator::count);
        assert_eq!(logs, 0, "{point}: log files are left");
        ground.stop_pools();
        Fixture::sqlite_in(&ground.home.path()).recount();
    }
}
