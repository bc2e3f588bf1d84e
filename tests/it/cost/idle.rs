//! How often a worker wakes up that has nothing to do.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::strace;
use crate::cli::harness::PROGRAM;
use crate::engine::harness::{Home, Pool, wait_until};

/// So many times of going to sleep are looked at.
const SLEEPS: usize = 8;
/// Where it is alone it looks for orders once a second, and everything else that is due by the clock is done then.
const SHORT: u32 = 600;
/// The last job and the first look for what is old are just behind it, a heartbeat comes in between, and a machine may be
/// slow.
const MOST_SHORT: usize = 4;

#[test]
fn what_is_due_for_an_idle_worker_is_done_together() {
    if !strace::is_there() {
        return;
    }
    let home = Home::new();
    let tape = home.folder().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=epoll_wait", "-e", "signal=none", "-o"]).arg(&tape).arg(PROGRAM);
    let _pool = Pool::spawn(&home, home.call(["worker", "run"]).through(strace).into_command());
    // A job comes at any time, and work is looked for when it does.
    for id in ["a", "b"] {
        home.enqueue(id, "sleep 0.2");
        home.wait_for(id, "completed");
    }
    let before = sleeps(&tape).len();
    wait_until("it sleeps now and then", || sleeps(&tape).len() >= before + SLEEPS);
    let idle = &sleeps(&tape)[before..];
    let short = idle.iter().filter(|sleep| **sleep < SHORT).count();
    assert!(short <= MOST_SHORT, "so many milliseconds it meant to sleep: {idle:?}");
}

/// For how many milliseconds at most it went to sleep, each time.
fn sleeps(tape: &Path) -> Vec<u32> {
    let text = fs::read_to_string(tape).unwrap_or_default();
    let slept = text.lines().filter(|line| line.ends_with(" = 0")).filter_map(|line| line.rsplit_once(')'));
    slept.filter_map(|(call, _)| call.rsplit_once(", ")?.1.parse().ok()).collect()
}
