//! A command that does one thing opens the store once, and starts no thread and no process.

use super::strace::{self, Calls};
use crate::engine::harness::{Home, Pool};

/// Whatever starts a thread, a process, or the loop of a runtime.
const STARTS: [&str; 7] =
    ["clone", "clone3", "fork", "vfork", "epoll_create", "epoll_create1", "io_uring_setup"];

/// Each is run on a home with the jobs `pending`, `done` and `dead`.
const COMMANDS: [&str; 20] = [
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
fn a_command_opens_the_store_once_and_starts_nothing() {
    if !strace::is_there() {
        return;
    }
    let home = Home::new();
    home.enqueue("done", "echo hello");
    Pool::drain(&home, "");
    home.dead_job("dead", "no luck");
    home.run(["enqueue", "-q", "--id", "pending", "--", "true"]).ok();
    for command in COMMANDS {
        let calls = Calls::of(home.call(command.split(' ')), home.folder());
        let started = calls.named(&STARTS);
        assert!(started.is_empty(), "`{command}` starts something: {started:#?}");
        let opened = calls.opened(&home.database());
        assert_eq!(opened.len(), 1, "`{command}` opens the store once: {opened:#?}");
    }
}

#[test]
fn what_a_worker_starts_is_seen() {
    if !strace::is_there() {
        return;
    }
    let home = Home::with_jobs(&["a"]);
    let calls = Calls::of(home.call(["worker", "run", "-q", "--until-empty"]), home.folder());
    assert!(calls.named(&STARTS).len() > 2, "a worker, its slots, a job");
    assert!(calls.opened(&home.database()).len() > 1, "a supervisor and a worker");
}
