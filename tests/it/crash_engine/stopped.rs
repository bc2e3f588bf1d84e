//! FAULTS 25: workers that are stopped for longer than their leases, and continue.

use std::time::Duration;

use rustix::process::Signal;

use super::harness::CrashHome;
use super::ledger::LineKind;
use super::processes::{kill, pid, stop_for, wait};

/// A job whose first attempt succeeds when the test creates `go`, and its worker, which is stopped.
fn with_a_stopped_worker() -> CrashHome {
    let crash_home = CrashHome::with_short_leases();
    crash_home.job("a", "escape daemon setsid; first && until_there go");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &["daemon"]);
    kill(crash_home.worker_of(pool), Signal::STOP);
    crash_home
}

#[test]
fn fault_25_a_worker_that_was_stopped_for_too_long_records_nothing() {
    let crash_home = with_a_stopped_worker();
    let worker = crash_home.worker_of(crash_home.first_pool());
    crash_home.put("go");
    crash_home.loses("a", 1);
    kill(worker, Signal::CONT);
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_25_another_pool_takes_over_if_the_supervisor_was_stopped_too() {
    let crash_home = with_a_stopped_worker();
    let pool = crash_home.first_pool();
    kill(pool.supervisor, Signal::STOP);
    let worker = crash_home.worker_of(pool);
    crash_home.pool();
    crash_home.loses("a", 1);
    kill(worker, Signal::CONT);
    kill(pool.supervisor, Signal::CONT);
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_25_a_worker_that_was_reaped_records_nothing_and_is_replaced() {
    let crash_home = with_a_stopped_worker();
    let worker = crash_home.workers().remove(0);
    crash_home.put("go");
    wait("the first attempt succeeds", || crash_home.has(LineKind::End, "a", 1));
    crash_home.store.reap(&worker.id, None, &[]).expect("it is reaped");
    kill(pid(worker.pid), Signal::CONT);
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_25_a_worker_that_was_stopped_for_less_than_its_lease_loses_nothing() {
    let crash_home = CrashHome::new();
    crash_home.set("heartbeat_interval", "200ms");
    crash_home.job("a", "until_there go");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    stop_for(Duration::from_millis(1_500), &[crash_home.worker_of(pool), pool.supervisor]);
    crash_home.put("go");
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: success");
}
