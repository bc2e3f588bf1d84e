//! FAULTS 25: workers that are stopped for longer than their leases, and continue.

use std::time::Duration;

use rustix::process::Signal;
use store::Store;

use super::harness::CrashHome;
use super::ledger::LineKind;
use super::processes::{kill, pid, stop_for, wait};

/// A job whose first attempt succeeds when the test creates `go`, and its worker, which is stopped.
fn with_a_stopped_worker() -> CrashHome {
    let ground = CrashHome::with_short_leases();
    ground.job("a", "escape daemon setsid; first && until_there go");
    let pool = ground.pool();
    ground.runs("a", 1, &["daemon"]);
    kill(ground.worker_of(pool), Signal::STOP);
    ground
}

#[test]
fn fault_25_a_worker_that_was_stopped_for_too_long_records_nothing() {
    let ground = with_a_stopped_worker();
    let worker = ground.worker_of(ground.first_pool());
    ground.put("go");
    ground.loses("a", 1);
    kill(worker, Signal::CONT);
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_25_another_pool_takes_over_if_the_supervisor_was_stopped_too() {
    let ground = with_a_stopped_worker();
    let pool = ground.first_pool();
    kill(pool.supervisor, Signal::STOP);
    let worker = ground.worker_of(pool);
    ground.pool();
    ground.loses("a", 1);
    kill(worker, Signal::CONT);
    kill(pool.supervisor, Signal::CONT);
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_25_a_worker_that_was_reaped_records_nothing_and_is_replaced() {
    let ground = with_a_stopped_worker();
    let worker = ground.workers().remove(0);
    ground.put("go");
    wait("the first attempt succeeds", || ground.has(LineKind::End, "a", 1));
    ground.store.reap(&worker.id, None).expect("it is reaped");
    kill(pid(worker.pid), Signal::CONT);
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_25_a_worker_that_was_stopped_for_less_than_its_lease_loses_nothing() {
    let ground = CrashHome::new();
    ground.set("heartbeat_interval", "200ms");
    ground.job("a", "until_there go");
    let pool = ground.pool();
    ground.runs("a", 1, &[]);
    stop_for(Duration::from_millis(1_500), &[ground.worker_of(pool), pool.supervisor]);
    ground.put("go");
    ground.finish();
    assert_eq!(ground.story("a"), "completed: success");
}
