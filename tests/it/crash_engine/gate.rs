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
fn crash_home() -> CrashHome {
    let crash_home = CrashHome::new();
    crash_home.set("heartbeat_interval", "500ms");
    crash_home.set("lease", "2s");
    crash_home
}

#[test]
fn fault_25_a_gate_that_is_held_for_longer_than_a_lease_loses_nothing() {
    let crash_home = crash_home();
    crash_home.job("long", "until_there go");
    crash_home.job("short", "until_there held");
    let pool = crash_home.pool_of(&["--concurrency", "2"]);
    crash_home.runs("long", 1, &[]);
    crash_home.runs("short", 1, &[]);
    let worker = crash_home.worker_of(pool);

    let gate = File::open(gate_path(&crash_home.home.database())).expect("the gate");
    gate.lock().expect("it is locked");
    let held = Instant::now();
    crash_home.put("held");
    wait("the short one ends", || crash_home.has(LineKind::End, "short", 1));
    wait("far more than a lease has passed", || held.elapsed() > LEASE * 3);
    assert_eq!(crash_home.worker_of(pool), worker, "{}", crash_home.journal());
    assert!(crash_home.has_shell("long", 1));
    drop(gate);

    crash_home.put("go");
    crash_home.finish();
    assert_eq!(
        (crash_home.story("short"), crash_home.story("long")),
        ("completed: success".into(), "completed: success".into())
    );
    assert!(!crash_home.journal().contains("hung"), "{}", crash_home.journal());
}

#[cfg(debug_assertions)] // Released builds have no fail-points.
mod stopped_inside {
    use super::*;

    fn is_stopped(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// A pool whose worker runs `a` and stops in the commit that settles it; its supervisor is stopped, too.
    fn pool_that_stops_in_the_gate(crash_home: &CrashHome) -> (Pool, Pid) {
        let mark = crash_home.home.file("stopped", "");
        crash_home.job("a", "until_there a_may_end");
        let pool = crash_home.start_pool(&[], Some(&format!("exchange.before_commit=!{}", mark.display())));
        crash_home.runs("a", 1, &[]);
        let worker = crash_home.worker_of(pool);
        kill(pool.supervisor, Signal::STOP);
        // From now on the next commit stops the worker.
        fs::remove_file(mark).expect("the mark is there");
        (pool, worker)
    }

    #[test]
    fn fault_25_another_pool_kills_a_worker_that_is_stopped_in_the_gate_and_loses_nothing() {
        let crash_home = crash_home();
        let (pool, stopped) = pool_that_stops_in_the_gate(&crash_home);
        crash_home.job("b", "until_there b_may_end");
        let other = crash_home.pool_of(&["--concurrency", "2"]);
        crash_home.runs("b", 1, &[]);
        let innocent = crash_home.worker_of(other);

        crash_home.put("a_may_end");
        wait("the worker is stopped", || is_stopped(stopped));
        assert!(!process::lockers_of(&gate_path(&crash_home.home.database())).is_empty(), "in the gate");
        wait_within(LEASE * 8, "it is killed", || !is_alive(stopped));
        crash_home.loses("a", 1);
        assert_eq!(crash_home.worker_of(other), innocent, "{}", crash_home.journal());

        crash_home.put("b_may_end");
        kill(pool.supervisor, Signal::CONT);
        crash_home.finish();
        assert_eq!(crash_home.story("a"), "completed: lost success");
        assert_eq!(crash_home.story("b"), "completed: success");
    }
}
