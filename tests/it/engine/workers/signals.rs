//! FAULTS 34: signals to supervisors and workers.

use rustix::process::Signal;
use serde_json::json;

use crate::engine::harness::{Home, Pool, UNTIL_GO, history, is_alive, send, wait_until};

/// The receiver of a signal.
#[derive(Clone, Copy, Debug)]
enum SignalTarget {
    Supervisor,
    Worker,
}

/// A pool with one job that runs until the test creates `go`.
fn busy(home: &Home) -> Pool<'_> {
    home.enqueue("long", UNTIL_GO);
    let pool = Pool::run(home, "");
    home.wait_for_file("running");
    pool
}

fn signal(pool: &Pool<'_>, home: &Home, to: SignalTarget, signal: Signal) {
    match to {
        SignalTarget::Supervisor => pool.signal(signal),
        SignalTarget::Worker => send(home.workers()[0].pid, signal),
    }
}

#[track_caller]
fn assert_drains(to: SignalTarget, first: Signal) {
    let home = Home::new();
    let pool = busy(&home);
    signal(&pool, &home, to, first);
    home.wait_until_draining();
    home.enqueue("later", "true");
    assert_eq!(home.state_of("long"), "processing", "{to:?} {first:?}");
    home.file("go", "");
    pool.ends_well();
    assert_eq!(home.state_of("long"), "completed", "{to:?} {first:?}");
    assert_eq!(home.state_of("later"), "pending", "{to:?} {first:?}");
    assert_eq!(home.workers(), []);
}

#[track_caller]
fn assert_releases(to: SignalTarget, first: Signal, second: Signal) {
    let home = Home::new();
    let pool = busy(&home);
    signal(&pool, &home, to, first);
    home.wait_until_draining();
    assert_eq!(home.state_of("long"), "processing");
    signal(&pool, &home, to, second);
    pool.ends_well();
    let job = home.show("long");
    assert_eq!(
        (&job["state"], &job["failures"]),
        (&json!("pending"), &json!(0)),
        "{to:?} {first:?} {second:?}"
    );
    assert_eq!(history(&job)[0]["outcome"], "released");
    assert!(!is_alive(home.wait_for_pid("running")));
    assert_eq!(home.workers(), []);
}

#[test]
fn fault_34_one_sigterm_to_the_supervisor_drains() {
    assert_drains(SignalTarget::Supervisor, Signal::TERM);
}

#[test]
fn fault_34_one_sigint_to_the_supervisor_drains() {
    assert_drains(SignalTarget::Supervisor, Signal::INT);
}

#[test]
fn fault_34_a_sighup_to_the_supervisor_drains() {
    assert_drains(SignalTarget::Supervisor, Signal::HUP);
}

#[test]
fn fault_34_one_sigterm_to_a_worker_drains() {
    assert_drains(SignalTarget::Worker, Signal::TERM);
}

#[test]
fn fault_34_one_sigint_to_a_worker_drains() {
    assert_drains(SignalTarget::Worker, Signal::INT);
}

#[test]
fn fault_34_a_sighup_to_a_worker_drains() {
    assert_drains(SignalTarget::Worker, Signal::HUP);
}

#[test]
fn fault_34_a_second_signal_to_the_supervisor_releases_running_jobs() {
    assert_releases(SignalTarget::Supervisor, Signal::TERM, Signal::TERM);
    assert_releases(SignalTarget::Supervisor, Signal::INT, Signal::INT);
}

#[test]
fn fault_34_a_second_signal_may_differ_from_the_first() {
    assert_releases(SignalTarget::Supervisor, Signal::TERM, Signal::INT);
    assert_releases(SignalTarget::Supervisor, Signal::HUP, Signal::TERM);
}

#[test]
fn fault_34_a_second_signal_to_a_worker_releases_running_jobs() {
    assert_releases(SignalTarget::Worker, Signal::TERM, Signal::TERM);
    assert_releases(SignalTarget::Worker, Signal::INT, Signal::TERM);
}

#[test]
fn fault_34_a_sigquit_releases_running_jobs_at_once() {
    let home = Home::new();
    let pool = busy(&home);
    pool.signal(Signal::QUIT);
    pool.ends_well();
    assert_eq!(home.state_of("long"), "pending");
    assert!(!is_alive(home.wait_for_pid("running")));
}

#[test]
fn fault_34_a_third_signal_kills_without_grace() {
    let home = Home::new();
    home.set("kill_grace", "1h");
    home.enqueue("deaf", "trap '' TERM; echo $$ > running; while :; do sleep 0.05; done");
    let pool = Pool::run(&home, "");
    home.wait_for_file("running");
    pool.signal(Signal::TERM);
    home.wait_until_draining();
    for handled in 0..2 {
        // Two signals in quick succession may count as one, so the test waits until the worker has handled each.
        pool.signal(Signal::TERM);
        wait_until("the worker has handled the signal", || {
            home.journal().matches("releasing its attempts").count() > handled
        });
    }
    pool.ends_well();
    assert_eq!(home.state_of("deaf"), "pending");
    assert!(!is_alive(home.wait_for_pid("running")));
}
