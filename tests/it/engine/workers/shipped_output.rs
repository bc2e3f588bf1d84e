//! The output of attempts on another machine, which the store keeps.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

use super::cut_off::Machine;
use crate::engine::harness::{Home, Pool, UNTIL_GO, send, wait_until};

fn spooled(machine: &Machine<'_>) -> usize {
    fs::read_dir(machine.path().join("spool")).map_or(0, Iterator::count)
}

#[test]
fn long_output_can_be_read_on_another_machine() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.enqueue("a", &format!("seq 100000; {UNTIL_GO}; echo the end"));
    let _pool = far.pool("");
    home.wait_for_file("running");
    wait_until("its output is shipped while it runs", || {
        near.run("logs a").ok().stdout.contains("\n100000\n")
    });
    home.file("go", "");
    near.run("logs -f a").ok().shows("1\n2\n3\n").shows("\nthe end\n");
    home.wait_for("a", "completed");
    let mut whole: Vec<String> = (1..=100_000).map(|number: u32| number.to_string()).collect();
    whole.push("the end\n".to_owned());
    assert_eq!(near.run("logs a").ok().stdout, whole.join("\n"));
    assert_eq!(near.run("logs a --tail 2").ok().stdout, "100000\nthe end\n");
    wait_until("the file is gone", || spooled(&far) == 0);
    assert!(!far.path().join("logs").join("1-1.log").exists());
}

#[test]
fn short_output_is_stored_with_the_attempt() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.enqueue("a", "echo hello");
    let _pool = far.pool("");
    home.wait_for("a", "completed");
    assert_eq!(near.run("logs a").ok().stdout, "hello\n");
    assert_eq!(spooled(&far), 0);
}

#[test]
fn a_follower_on_another_machine_sees_each_line_once() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.enqueue("a", &format!("echo one; {UNTIL_GO}; echo two"));
    let _pool = far.pool("");
    home.wait_for_file("running");
    let follower = near.call("logs -f a").into_command().stdout(std::process::Stdio::piped()).spawn();
    let follower = follower.expect("it starts");
    wait_until("the first line is in the store", || near.run("logs a").ok().stdout == "one\n");
    home.file("go", "");
    let output = follower.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n");
}

#[test]
fn the_middle_of_very_long_output_is_cut() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.set("log_max_bytes", "1M");
    home.enqueue("a", "seq 1000000; sleep 1.2; seq 1000001 2000000");
    let _pool = far.pool("");
    home.wait_for("a", "completed");
    let shown = near.run("logs a").ok();
    let lines: Vec<u64> = shown.stdout.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(lines.first(), Some(&1));
    assert_eq!(lines.last(), Some(&2_000_000));
    let kept = home.show("a")["history"][0]["log_bytes"].as_u64().expect("a number");
    assert!((1 << 20..3 << 20).contains(&kept), "{kept} bytes are kept");
    assert!(
        shown.stdout.len() as u64 >= kept && (shown.stdout.len() as u64) < kept + 200,
        "{}",
        shown.stdout.len()
    );
}

#[test]
fn the_next_worker_of_a_home_ships_the_output_of_a_dead_one() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.enqueue(
        "a",
        "if [ -e running ]; then exit 0; fi; seq 20000; echo $$ > running; while :; do sleep 0.02; done",
    );
    far.net("cut-output");
    let pool = far.pool("");
    let command = home.wait_for_pid("running");
    wait_until("it has a file", || spooled(&far) == 1);
    let worker = home.workers().remove(0).pid;
    for pid in [pool.supervisor_pid(), worker, command] {
        send(pid, Signal::KILL);
    }
    let stored = home.store();
    let parts = || stored.output_after(&"a".parse().expect("an id"), 1, 0, 1).expect("parts").len();
    assert_eq!(parts(), 0, "nothing was shipped");
    far.repair("cut-output");
    let _next = far.pool("");
    home.wait_for("a", "completed");
    wait_until("the file is gone", || spooled(&far) == 0);
    near.run("logs a --attempt 1").ok().shows("\n20000\n");
}

/// A worker that starts cannot know whether the worker of an attempt that has just ended will ship its output.
#[test]
fn output_that_a_second_worker_of_the_home_has_shipped_is_kept() {
    let home = Home::new();
    let (far, near) = (Machine::new(&home, "far"), Machine::new(&home, "near"));
    home.enqueue("a", "seq 20000");
    far.net("cut-output");
    let _first = far.pool("");
    home.wait_for("a", "completed");
    assert_eq!(spooled(&far), 1, "it could not ship the file");
    let healthy = far.path().join("healthy");
    fs::create_dir(&healthy).expect("a folder");
    let second = far.call("worker run").env("QUEUECTL_SIMULATE_NETWORK", &healthy).interruptible();
    let _second = Pool::up(&home, second.into_command());
    wait_until("the second worker has shipped the file", || spooled(&far) == 0);
    // This sleep is the time in which the first worker tries again, and finds no file.
    std::thread::sleep(Duration::from_millis(2_500));
    near.run("logs a").ok().shows("\n20000\n");
}

#[test]
fn a_store_of_one_machine_ships_nothing() {
    let home = Home::new();
    home.enqueue("a", "seq 100000");
    Pool::drain(&home, "");
    assert!(home.path().join("logs").join("1-1.log").exists() && !home.path().join("spool").exists());
    let stored = home.store().output_after(&"a".parse().expect("an id"), 1, 0, 1).expect("parts");
    assert_eq!(stored, []);
}
