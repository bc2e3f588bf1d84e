//! How often an idle worker wakes up.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::strace;
use crate::cli::harness::PROGRAM;
use crate::engine::harness::{Home, Pool, wait_until};

/// The number of sleeps examined.
const SLEEPS: usize = 8;
/// In milliseconds. A lone worker polls for orders once a second, and does all other periodic work at the same time.
const SHORT_SLEEP: u32 = 600;
/// Allows for the end of the last job, the first prune, a heartbeat, and a slow machine.
const MAX_SHORT_SLEEPS: usize = 4;

#[test]
fn an_idle_worker_does_its_periodic_work_together() {
    if !strace::is_installed() {
        return;
    }
    let home = Home::new();
    let trace = home.folder().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=epoll_wait", "-e", "signal=none", "-o"]).arg(&trace).arg(PROGRAM);
    let _pool = Pool::spawn(&home, home.call(["worker", "run"]).through(strace).into_command());
    // Jobs arrive at arbitrary times, and each makes the worker poll for work.
    for id in ["a", "b"] {
        home.enqueue(id, "sleep 0.2");
        home.wait_for(id, "completed");
    }
    let before = sleeps(&trace).len();
    wait_until("the idle worker sleeps", || sleeps(&trace).len() >= before + SLEEPS);
    let idle = &sleeps(&trace)[before..];
    let short = idle.iter().filter(|sleep| **sleep < SHORT_SLEEP).count();
    assert!(short <= MAX_SHORT_SLEEPS, "sleeps in milliseconds: {idle:?}");
}

/// The timeout in milliseconds of each sleep that timed out.
fn sleeps(trace: &Path) -> Vec<u32> {
    let text = fs::read_to_string(trace).unwrap_or_default();
    let slept = text.lines().filter(|line| line.ends_with(" = 0")).filter_map(|line| line.rsplit_once(')'));
    slept.filter_map(|(call, _)| call.rsplit_once(", ")?.1.parse().ok()).collect()
}
