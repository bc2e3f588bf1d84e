//! `worker run --until-empty`: what holds it and what does not.

use std::process::Command;

use store::{Pause, Queues};

use super::harness::{Home, Pool, UNTIL_GO};
use crate::cli::harness::PROGRAM;

#[test]
fn an_empty_queue_is_the_end() {
    Pool::drain(&Home::new(), "--count 2");
}

/// Then the kernel would reap them, and one that ended well would be taken for one that crashed.
#[test]
fn a_caller_who_ignores_the_end_of_children_changes_nothing() {
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
fn a_retry_is_waited_for() {
    let home = Home::new();
    home.set("retry_delay", "100ms");
    home.enqueue_with("twice", "[ -e tried ] || { touch tried; exit 1; }", "--max-retries 1");
    Pool::drain(&home, "");
    assert_eq!(home.state_of("twice"), "completed");
}

#[test]
fn what_is_scheduled_or_held_back_is_not_waited_for() {
    let home = Home::new();
    home.enqueue_with("tomorrow", "true", "--delay 24h");
    home.enqueue_with("held", "true", "--queue held");
    home.enqueue_with("ready", "true", "");
    let pause = Pause { by: "test".to_owned(), reason: None };
    home.store().pause_queue(&"held".parse().expect("a name"), &pause).expect("it is held");
    Pool::drain(&home, "");
    for (id, state) in [("tomorrow", "pending"), ("held", "pending"), ("ready", "completed")] {
        assert_eq!(home.state_of(id), state, "{id}");
    }
}

#[test]
fn what_runs_elsewhere_is_waited_for() {
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
fn only_the_queues_that_it_serves_count() {
    let home = Home::new();
    home.enqueue_with("mine", "true", "--queue mine");
    home.enqueue_with("other", "true", "--queue other");
    Pool::drain(&home, "--queue mine");
    assert_eq!((home.state_of("mine").as_str(), home.state_of("other").as_str()), ("completed", "pending"));
}

#[test]
fn the_end_is_noticed_at_once() {
    let home = Home::new();
    home.enqueue("it", "sleep 0.1");
    Pool::drain_by_ear(&home, "");
    assert_eq!(home.state_of("it"), "completed");
}
