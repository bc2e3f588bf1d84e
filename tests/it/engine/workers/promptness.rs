//! An idle worker acts on a bell at once, without waiting for its next poll.

use crate::chaos::shim::Shim;
use crate::cli::harness::background::Background;
use crate::engine::harness::{Home, Pool, millis_between};

/// With so slow a clock the output of an attempt would stay in memory for longer than any test takes.
const SLOWDOWN: u64 = 1_000;
/// Less for `run`, which polls by the same clock.
const SLOWDOWN_OF_RUN: u64 = 100;

#[test]
fn an_idle_worker_starts_a_job_at_once() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "");
    for round in 0..5 {
        let id = format!("job-{round}");
        home.enqueue(&id, "true");
        home.wait_for(&id, "completed");
    }
}

#[test]
fn an_idle_worker_starts_a_delayed_job_when_it_is_due() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "");
    for round in 0..4 {
        let id = format!("job-{round}");
        home.enqueue_with(&id, "true", "--delay 100ms");
        let job = home.wait_for(&id, "completed");
        assert_eq!(millis_between(&job["created_at"], &job["run_at"]), 100);
        assert!(millis_between(&job["run_at"], &job["started_at"]) >= 0, "{job}");
    }
}

#[test]
fn a_dependent_job_starts_when_its_parent_is_done() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "");
    home.enqueue("first", "sleep 0.1");
    home.enqueue_with("second", "true", "--depends-on first");
    let second = home.wait_for("second", "completed");
    assert!(millis_between(&home.show("first")["finished_at"], &second["started_at"]) >= 0, "{second}");
}

#[test]
fn jobs_that_one_worker_makes_ready_are_started_by_other_workers() {
    let home = Home::new();
    let _pool = Pool::run_without_polling(&home, "--count 2 --concurrency 1");
    for round in 0..4 {
        let [first, one, other] = ["first", "one", "other"].map(|name| format!("{name}-{round}"));
        let dependent = format!("--depends-on {first}");
        home.enqueue(&first, "sleep 0.1");
        // Each waits for both, so they must run concurrently.
        let both =
            format!("touch $QUEUECTL_JOB_ID; until [ -e {one} ] && [ -e {other} ]; do sleep 0.01; done");
        home.enqueue_with(&one, &both, &dependent);
        home.enqueue_with(&other, &both, &dependent);
        for id in [&one, &other] {
            home.wait_for(id, "completed");
        }
    }
}

#[test]
fn early_output_of_a_command_reaches_its_readers_at_once() {
    let home = Home::new();
    let shim = Shim::new(&home);
    shim.slow_clock(SLOWDOWN);
    let call = home.call(["worker", "run", "--concurrency", "2"]).envs(shim.variables());
    let _pool = Pool::up(&home, call.interruptible().into_command());
    let line = "echo ready; until [ -e go ]; do sleep 0.02; done; echo went";
    home.enqueue("a", line);
    let followed = Background::start(home.call(["logs", "-f", "a"]));
    let run = Background::start(home.call(["run", "--id", "b", "--command", line]));
    for reader in [&followed, &run] {
        assert_eq!(reader.prints(), "ready");
    }
    home.file("go", "");
    for reader in [followed, run] {
        assert_eq!(reader.prints(), "went");
    }
}

#[test]
fn a_worker_started_by_run_shows_output_at_once() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let shim = Shim::new(&home);
    shim.slow_clock(SLOWDOWN_OF_RUN);
    let line = "echo ready; until [ -e go ]; do sleep 0.02; done";
    let call = home.call(["run", "--id", "a", "--command", line]).envs(shim.variables());
    let run = Background::start(call);
    assert_eq!(run.prints(), "ready");
    home.file("go", "");
    assert_eq!(run.end().0.code(), Some(0));
}
