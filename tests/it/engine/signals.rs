//! FAULTS 34: signals to supervisors and workers.

use rustix::process::Signal;
use serde_json::json;

use super::harness::{Home, Pool, UNTIL_GO, history, is_alive, send, wait_until};

/// Who gets a signal.
#[derive(Clone, Copy, Debug)]
enum To {
    Supervisor,
    Worker,
}

/// A pool with one job that runs until the test says so.
fn busy(home: &Home) -> Pool<'_> {
    home.enqueue("long", UNTIL_GO);
    let pool = Pool::run(home, "");
    home.wait_for_file("running");
    pool
}

fn signal(pool: &Pool<'_>, home: &Home, to: To, signal: Signal) {
    match to {
        To::Supervisor => pool.signal(signal),
        To::Worker => send(home.workers()[0].pid, signal),
    }
}

#[track_caller]
fn assert_drains(to: To, first: Signal) {
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
fn assert_gives_back(to: To, first: Signal, second: Signal) {
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
    assert_drains(To::Supervisor, Signal::TERM);
}

#[test]
fn fault_34_one_sigint_to_the_supervisor_drains() {
    assert_drains(To::Supervisor, Signal::INT);
}

#[test]
fn fault_34_a_sighup_to_the_supervisor_drains() {
    assert_drains(To::Supervisor, Signal::HUP);
}

#[test]
fn fault_34_one_sigterm_to_a_worker_drains() {
    assert_drains(To::Worker, Signal::TERM);
}

#[test]
fn fault_34_one_sigint_to_a_worker_drains() {
    assert_drains(To::Worker, Signal::INT);
}

#[test]
fn fault_34_a_sighup_to_a_worker_drains() {
    assert_drains(To::Worker, Signal::HUP);
}

#[test]
fn fault_34_a_second_signal_to_the_supervisor_gives_back_what_runs() {
    assert_gives_back(To::Supervisor, Signal::TERM, Signal::TERM);
    assert_gives_back(To::Supervisor, Signal::INT, Signal::INT);
}

#[test]
fn fault_34_a_second_signal_may_be_another_one() {
    assert_gives_back(To::Supervisor, Signal::TERM, Signal::INT);
    assert_gives_back(To::Supervisor, Signal::HUP, Signal::TERM);
}

#[test]
fn fault_34_a_second_signal_to_a_worker_gives_back_what_runs() {
    assert_gives_back(To::Worker, Signal::TERM, Signal::TERM);
    assert_gives_back(To::Worker, Signal::INT, Signal::TERM);
}

#[test]
fn fault_34_a_sigquit_gives_back_what_runs_at_once() {
    let home = Home::new();
    let pool = busy(&home);
    pool.signal(Signal::QUIT);
    pool.ends_well();
    assert_eq!(home.state_of("long"), "pending");
    assert!(!is_alive(home.wait_for_pid("running")));
}

#[test]
fn fault_34_a_third_signal_has_no_patience() {
    let home = Home::new();
    home.set("kill_grace", "1h");
    home.enqueue("deaf", "trap '' TERM; echo $$ > running; while :; do sleep 0.05; done");
    let pool = Pool::run(&home, "");
    home.wait_for_file("running");
    pool.signal(Signal::TERM);
    home.wait_until_draining();
    for heeded in 0..2 {
        // Two that come at once may count as one, so the next is sent when the worker knows of the last.
        pool.signal(Signal::TERM);
        wait_until("the worker heeds it", || home.journal().matches("ending what it runs").count() > heeded);
    }
    pool.ends_well();
    assert_eq!(home.state_of("deaf"), "pending");
    assert!(!is_alive(home.wait_for_pid("running")));
}
