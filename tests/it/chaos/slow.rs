//! A disk on which every call is slow.

use std::time::Duration;

use super::shim::Shim;
use crate::crash_engine::harness::CrashHome;
use crate::crash_engine::processes::{wait, wait_within};

#[test]
fn fault_29_a_slow_disk_loses_nothing() {
    let crash_home = CrashHome::new();
    crash_home.set("heartbeat_interval", "1s");
    crash_home.set("lease", "3s");
    let shim = Shim::new(&crash_home.home);
    let crash_home = crash_home.under(shim.variables());
    // Some jobs run longer than the lease.
    crash_home.jobs(9, |at| if at % 4 == 0 { "sleep 4" } else { "true" });
    crash_home.pool_of(&["--count", "2", "--concurrency", "2"]);
    shim.slow(Duration::from_millis(20));
    for at in 0..3 {
        let (id, command) = (format!("late-{at}"), ". ./job.sh; say START; say END");
        crash_home.run(&["enqueue", "-q", "--id", &id, "--command", command]).ok();
    }
    wait_within(Duration::from_secs(60), "every job has ended", || crash_home.unfinished().is_empty());
    wait("many calls were slow", || shim.delayed() > 100);
    shim.heal();
    println!("{} calls were slow\n{}", shim.delayed(), crash_home.journal());
    crash_home.finish();
    for id in crash_home.ids() {
        // Prefetched claims may have been released.
        let story = crash_home.story(&id);
        assert!(story.ends_with(" success") && !story.contains("lost"), "{id}: {story}");
    }
}
