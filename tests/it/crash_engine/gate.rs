//! A write gate that is held for longer than a lease: no worker can write, and only the holder may be killed for that.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use store::sqlite::gate_path;
use sys::process;

use super::harness::{CrashHome, Pool};
use super::ledger::LineKind;
use super::processes::{is_alive, kill, wait, wait_within};

const LEASE: Duration = Duration::from_secs(2);

/// With leases that are long enough for a busy machine.
fn ground() -> CrashHome {
    let ground = CrashHome::new();
    ground.set("heartbeat_interval", "500ms");
    ground.set("lease", "2s");
    ground
}

#[test]
fn fault_25_a_gate_that_is_held_for_longer_than_a_lease_loses_nothing() {
    let ground = ground();
    ground.job("long", "until_there go");
    ground.job("short", "until_there held");
    let pool = ground.pool_of(&["--concurrency", "2"]);
    ground.runs("long", 1, &[]);
    ground.runs("short", 1, &[]);
    let worker = ground.worker_of(pool);

    let gate = File::open(gate_path(&ground.home.database())).expect("the gate");
    gate.lock().expect("it is locked");
    let held = Instant::now();
    ground.put("held");
    wait("the short one ends", || ground.has(LineKind::End, "short", 1));
    wait("far more than a lease has passed", || held.elapsed() > LEASE * 3);
    assert_eq!(ground.worker_of(pool), worker, "{}", ground.journal());
    assert!(ground.has_shell("long", 1));
    drop(gate);

    ground.put("go");
    ground.finish();
    assert_eq!(
        (ground.story("short"), ground.story("long")),
        ("completed: success".into(), "completed: success".into())
    );
    assert!(!ground.journal().contains("hung"), "{}", ground.journal());
}

#[cfg(debug_assertions)] // Released builds have no fail-points.
mod stopped_inside {
    use super::*;

    fn is_stopped(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// A pool whose worker runs `a` and stops in the commit that settles it; its supervisor is stopped, too.
    fn pool_that_stops_in_the_gate(ground: &CrashHome) -> (Pool, Pid) {
        let mark = ground.home.file("stopped", "");
        ground.job("a", "until_there a_may_end");
        let pool = ground.start_pool(&[], Some(&format!("exchange.before_commit=!{}", mark.display())));
        ground.runs("a", 1, &[]);
        let worker = ground.worker_of(pool);
        kill(pool.supervisor, Signal::STOP);
        // From now on the next commit stops the worker.
        fs::remove_file(mark).expect("the mark is there");
        (pool, worker)
    }

    #[test]
    fn fault_25_another_pool_kills_a_worker_that_is_stopped_in_the_gate_and_loses_nothing() {
        let ground = ground();
        let (pool, stopped) = pool_that_stops_in_the_gate(&ground);
        ground.job("b", "until_there b_may_end");
        let other = ground.pool_of(&["--concurrency", "2"]);
        ground.runs("b", 1, &[]);
        let innocent = ground.worker_of(other);

        ground.put("a_may_end");
        wait("the worker is stopped", || is_stopped(stopped));
        assert!(!process::lockers_of(&gate_path(&ground.home.database())).is_empty(), "in the gate");
        wait_within(LEASE * 8, "it is killed", || !is_alive(stopped));
        ground.loses("a", 1);
        assert_eq!(ground.worker_of(other), innocent, "{}", ground.journal());

        ground.put("b_may_end");
        kill(pool.supervisor, Signal::CONT);
        ground.finish();
        assert_eq!(ground.story("a"), "completed: lost success");
        assert_eq!(ground.story("b"), "completed: success");
    }
}
