//! A verb that changes a whole graph commits in portions, and other writers are served in between. With portions
//! disabled it does everything in one transaction, which shows that this test would notice if portions were lost.
//!
//! Commits are counted as syncs of the write-ahead log: each commit needs one.

use rustix::io::Errno;

use crate::chaos::shim::{Fault, Shim, When};
use crate::engine::harness::Home;

const LAYERS: usize = 6;
const WIDTH: usize = 60;

/// Layers of jobs, each of which depends on the whole previous layer.
fn layers() -> Home {
    let home = Home::new();
    let names = |layer: usize| (0..WIDTH).map(|at| format!("j{layer}-{at}")).collect::<Vec<String>>();
    let mut lines = Vec::new();
    for layer in 0..LAYERS {
        let parents = if layer == 0 { Vec::new() } else { names(layer - 1) };
        for id in names(layer) {
            let job = serde_json::json!({ "id": id, "command": "true", "depends_on": parents });
            lines.push(job.to_string());
        }
    }
    home.call(["enqueue", "-q", "-"]).with_stdin(lines.join("\n")).run().ok();
    home
}

/// The number of commits of a verb.
fn commits(home: &Home, verb: &[&str], without: &str) -> u64 {
    let shim = Shim::new(home);
    shim.only("queue.db-wal");
    shim.fails(Fault::Sync, Errno::IO, When::Nth(u64::MAX));
    home.call(verb.iter().copied()).envs(shim.variables()).env("QUEUECTL_WITHOUT", without).run().ok();
    shim.seen(Fault::Sync)
}

#[test]
fn fault_40_without_portions_a_graph_is_changed_in_one_long_transaction() {
    let retry = ["retry", "-q", "--state", "cancelled", "--yes"];
    for verb in [&["cancel", "-q", "j0-0"][..], &retry, &["cancel", "-q", "--state", "pending", "--yes"]] {
        // Both runs start from the same graph.
        let prepared = || {
            let home = layers();
            if verb == retry {
                home.run(["cancel", "-q", "j0-0"]).ok();
            }
            home
        };
        let (short, long) = (commits(&prepared(), verb, ""), commits(&prepared(), verb, "portions"));
        assert!(short >= 2 * long && long <= 3, "{verb:?}: {short} commits, {long} without portions");
    }
}
