//! A home that is deleted while its workers run: they end, and do not create it again.

use std::fs;

use rustix::process::Signal;

use crate::engine::harness::{Home, Pool, UNTIL_GO, is_alive, send, wait_until};

/// Workers may create a file in it while it is being deleted.
#[track_caller]
fn delete(home: &Home) {
    wait_until("it is deleted", || fs::remove_dir_all(home.path()).is_ok());
}

#[test]
fn workers_of_a_deleted_home_end_and_kill_their_commands() {
    let home = Home::new();
    home.enqueue("long", UNTIL_GO);
    let pool = Pool::run(&home, "--count 2");
    let mut pids: Vec<u32> = home.workers().iter().map(|worker| worker.pid).collect();
    pids.push(home.wait_for_pid("running"));
    delete(&home);
    assert!(pool.end().success());
    assert!(!pids.into_iter().any(is_alive));
    assert!(!home.path().exists());
}

#[test]
fn output_of_a_running_command_does_not_recreate_the_home() {
    let home = Home::new();
    home.enqueue("loud", "echo $$ > running; while :; do head -c 10000 /dev/zero; sleep 0.01; done");
    let pool = Pool::run(&home, "");
    let pid = home.wait_for_pid("running");
    delete(&home);
    assert!(pool.end().success());
    assert!(!is_alive(pid) && !home.path().exists());
}

#[test]
fn a_worker_that_dies_with_its_home_is_not_replaced() {
    let home = Home::new();
    home.enqueue("long", UNTIL_GO);
    let pool = Pool::run(&home, "");
    let pid = home.wait_for_pid("running");
    let worker = home.workers()[0].pid;
    send(worker, Signal::STOP);
    delete(&home);
    send(worker, Signal::KILL);
    assert!(pool.end().success());
    assert!(!is_alive(pid) && !home.path().exists());
}

#[test]
fn detached_workers_of_a_deleted_home_end_too() {
    let home = Home::new();
    let _pool = Pool::start(&home, "");
    let worker = home.workers().remove(0);
    delete(&home);
    for pid in [worker.pid, worker.supervisor_pid.expect("it has a supervisor")] {
        wait_until("it ends", || !is_alive(pid));
    }
    assert!(!home.path().exists());
}
