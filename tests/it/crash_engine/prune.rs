//! FAULTS 26: a crash at each seam of a walk through what is old. Nothing is half forgotten, and what is left goes the next
//! time.

use std::fs;

use super::harness::Ground;
use super::processes::wait;
use crate::store::fixture::Fixture;

#[test]
fn fault_26_a_worker_that_dies_as_it_forgets_loses_nothing_else() {
    for place in [
        "prune.before_commit",
        "prune.after_commit",
        "environment_gc.before_commit",
        "environment_gc.after_commit",
    ] {
        let ground = Ground::new();
        for id in ["a", "b"] {
            ground.job(id, "sleep 0.6; seq 1 3000");
        }
        ground.run(&["worker", "run", "-q", "--until-empty", "--concurrency", "2"]).ok();
        // In an environment of its own, so that nothing uses that of the others in the end.
        let kept = ["enqueue", "-q", "--id", "kept", "--delay", "1h", "--", "true"];
        ground.home.call(kept).env("OTHER", "yes").run().ok();
        ground.set("retain_completed", "0");
        ground.pool_dying_at(place, &[]);
        wait(&format!("somebody dies at {place}"), || ground.has_died());
        ground.run(&["prune", "-q"]).ok();
        assert_eq!(ground.ids(), ["kept"], "{place}");
        let logs = fs::read_dir(ground.home.path().join("logs")).map_or(0, Iterator::count);
        assert_eq!(logs, 0, "{place}: log files are left behind");
        ground.stop_pools();
        Fixture::sqlite_in(&ground.home.path()).recount();
    }
}
