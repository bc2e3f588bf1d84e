//! `worker run --until-empty`: what it waits for and what not.

use std::process::Command;

use rustix::process::Signal;
use store::Pause;

use crate::cli::harness::PROGRAM;
use crate::cli::harness::working_home::wait_until;
use crate::engine::harness::{Home, Pool, UNTIL_GO};

#[test]
fn workers_end_at_once_on_an_empty_queue() {
    Pool::drain(&Home::new(), "--count 2");
}

/// The supervisor is stopped until its first worker has ended.
#[cfg(debug_assertions)] // Released builds have no fail-points.
#[test]
fn a_worker_that_ends_right_after_its_start_holds_no_other_back() {
    let home = Home::new();
    let mark = home.folder().join("stopped");
    let call = home.call(["worker", "run", "--until-empty", "--count", "2"]).interruptible();
    let pool = Pool::spawn(
        &home,
        call.env("QUEUECTL_FAILPOINT", format!("supervisor.after_reports=!{}", mark.display()))
            .into_command(),
    );
    wait_until("the first worker has ended", || home.journal().contains("worker stopped"));
    pool.signal(Signal::CONT);
    pool.ends_well();
    assert_eq!(home.journal().matches("worker stopped").count(), 2, "{}", home.journal());
}

/// With SIGCHLD ignored the kernel would reap children, and a clean exit would look like a crash.
#[test]
fn a_caller_that_ignores_sigchld_makes_no_difference() {
    let home = Home::new();
    home.enqueue("it", "true");
    let mut env = Command::new("env");
    env.args(["--default-signal=INT,TERM,HUP", "--ignore-signal=CHLD", PROGRAM]);
    let call = home.call(["worker", "run", "--until-empty"]).through(env);
    Pool::spawn(&home, call.into_command()).ends_well();
    assert_eq!(home.state_of("it"), "completed");
    assert!(!home.journal().contains("died"), "{}", home.journal());
}

#[test]
fn it_waits_for_a_retry() {
    let home = Home::new();
    home.set("retry_delay", "100ms");
    home.enqueue_with("twice", "[ -e tried ] || { touch tried; exit 1; }", "--max-retries 1");
    Pool::drain(&home, "");
    assert_eq!(home.state_of("twice"), "completed");
}

#[test]
fn it_does_not_wait_for_delayed_jobs_or_paused_queues() {
    let home = Home::new();
    home.enqueue_with("tomorrow", "true", "--delay 24h");
    home.enqueue_with("held", "true", "--queue held");
    home.enqueue_with("ready", "true", "");
    let pause = Pause { by: "test".to_owned(), reason: None };
    home.store().pause_queue(&"held".parse().expect("a name"), &pause).expect("it is paused");
    Pool::drain(&home, "");
    for (id, state) in [("tomorrow", "pending"), ("held", "pending"), ("ready", "completed")] {
        assert_eq!(home.state_of(id), state, "{id}");
    }
}

#[test]
fn it_waits_for_jobs_of_other_workers() {
    let home = Home::new();
    home.enqueue("long", UNTIL_GO);
    let _busy = Pool::run(&home, "");
    home.wait_for_file("running");
    let call = home.call(["worker", "run", "--until-empty"]).interruptible();
    let mut waits = Pool::up(&home, call.into_command());
    home.enqueue("short", "true");
    home.wait_for("short", "completed");
    assert!(waits.is_up());
    home.file("go", "");
    waits.ends_well();
    assert_eq!(home.state_of("long"), "completed");
}

#[test]
fn it_does_not_wait_for_queues_that_it_does_not_serve() {
    let home = Home::new();
    home.enqueue_with("mine", "true", "--queue mine");
    home.enqueue_with("other", "true", "--queue other");
    Pool::drain(&home, "--queue mine");
    assert_eq!((home.state_of("mine").as_str(), home.state_of("other").as_str()), ("completed", "pending"));
}

#[test]
fn it_ends_without_polling() {
    let home = Home::new();
    home.enqueue("it", "sleep 0.1");
    Pool::drain_without_polling(&home, "");
    assert_eq!(home.state_of("it"), "completed");
}
