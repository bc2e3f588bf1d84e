//! A one-shot command opens the store once, and starts no thread and no process.

use super::strace;
use super::strace::Calls;
use crate::engine::harness::{Home, Pool};

/// System calls that start a thread, a process, or an event loop.
const START_CALLS: [&str; 7] =
    ["clone", "clone3", "fork", "vfork", "epoll_create", "epoll_create1", "io_uring_setup"];

/// Each command runs on a home with the jobs `pending`, `done` and `dead`.
const COMMANDS: [&str; 22] = [
    "--color never",
    "--json",
    "enqueue -- true",
    "enqueue --priority 3 --tag a --delay 1h --json -- echo hello",
    "enqueue {\"command\":\"true\"}",
    "status",
    "status --json",
    "list",
    "list --state dead --json",
    "show pending",
    "show done --json",
    "logs done",
    "wait done",
    "config get lease",
    "config list",
    "config set lease 60s",
    "worker list",
    "dlq list",
    "dlq retry dead",
    "cancel pending",
    "retry pending",
    "remove done",
];

#[test]
fn a_command_opens_the_store_once_and_starts_no_thread_or_process() {
    if !strace::is_installed() {
        return;
    }
    let home = Home::new();
    home.enqueue("done", "echo hello");
    Pool::drain(&home, "");
    home.dead_job("dead", "failed");
    home.run(["enqueue", "-q", "--id", "pending", "--", "true"]).ok();
    for command in COMMANDS {
        let calls = Calls::of(home.call(command.split(' ')), home.folder());
        let started = calls.named(&START_CALLS);
        assert!(started.is_empty(), "`{command}` starts a thread or process: {started:#?}");
        let opened = calls.opened(&home.database());
        assert_eq!(opened.len(), 1, "`{command}` must open the store once: {opened:#?}");
    }
}

#[test]
fn the_trace_shows_the_processes_that_a_worker_starts() {
    if !strace::is_installed() {
        return;
    }
    let home = Home::with_jobs(&["a"]);
    let calls = Calls::of(home.call(["worker", "run", "-q", "--until-empty"]), home.folder());
    assert!(calls.named(&START_CALLS).len() > 2, "a worker, its slots, a job");
    assert!(calls.opened(&home.database()).len() > 1, "a supervisor and a worker");
}
