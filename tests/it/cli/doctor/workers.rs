//! Workers that died or hang, what they left behind, and who is in the gate.

use std::fs::File;
use std::time::{Duration, SystemTime};

use store::sqlite::gate_path;
use sys::fs::lock::PatientLock;
use sys::process::lockers_of;

use super::super::harness::{Home, is_root};
use super::super::test_worker::TestWorker;
use super::{Visit, tamper};

#[test]
fn a_worker_that_died_is_told() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    Visit::pay_among_others(&home).code(0).finds("workers", "ok", "1 running").finds_no("dead_worker");
    drop(worker);
    Visit::pay(&home)
        .code(0)
        .finds("dead_worker", "warning", "worker w1 (process 4242) died; 1 job waits to be recovered")
        .finds("workers", "ok", "none running")
        .advises("queuectl worker start")
        .finds_no("worker_files");

    tamper(&home, "update workers set boot_id = 'another'");
    Visit::pay(&home).finds("dead_worker", "warning", "was running when the machine went down");
}

#[test]
fn a_worker_that_hangs_is_told() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    home.run(["config", "set", "heartbeat_interval", "1ms"]).ok();
    home.run(["config", "set", "lease", "1m"]).ok();
    let lease_is_over = "update jobs set lease_until = 0 where state = 'processing'";
    rusqlite::Connection::open(home.database())
        .expect("it opens")
        .execute_batch(lease_is_over)
        .expect("late");
    Visit::pay_among_others(&home).finds_no("hung_worker");

    let lock = File::options().write(true).open(home.path().join("workers/w1.lock")).expect("its lock");
    lock.set_modified(SystemTime::now() - Duration::from_secs(3_600)).expect("no sign of life");
    Visit::pay_among_others(&home).code(0).finds("hung_worker", "warning", "worker w1 (process 4242) hangs");
}

#[test]
fn files_of_workers_that_have_ended_are_told() {
    let home = Home::with_jobs(&["a"]);
    drop(TestWorker::new(&home, "w1"));
    let other = TestWorker::new(&home, "w2");
    Visit::pay_among_others(&home)
        .code(0)
        .finds("worker_files", "warning", "workers/ contains files of 1 dead worker")
        .finds_no("dead_worker");
    drop(other);
}

#[test]
fn whoever_stands_in_the_gate_is_named() {
    let home = Home::with_jobs(&["a"]);
    let gate = PatientLock::new(File::open(gate_path(&home.database())).expect("the gate"));
    assert!(gate.take_within(Duration::ZERO).expect("it is locked"));
    let visit = Visit::pay(&home).code(0).finds("gate", "warning", "locked for 2s by ");
    let said = visit.findings().into_iter().find(|finding| finding["check"] == "gate").expect("a gate");
    let words: Vec<&str> = said["said"].as_str().expect("text").split(' ').collect();
    let at = words.iter().position(|word| *word == "process").expect("a process is named");
    let pid: u32 = words[at + 1].parse().expect("a pid");
    // A process that another test is about to start has all open for a moment that this one has, locks too.
    assert!(pid == std::process::id() || !lockers_of(&gate_path(&home.database())).contains(&pid), "{said}");
    visit.advises(&format!("ps -fp {pid}"));
    drop(gate);
    Visit::pay(&home).code(0).finds("gate", "ok", "");
}

#[test]
fn a_worker_that_root_starts_is_told() {
    let home = Home::new();
    let level = if is_root() { "warning" } else { "ok" };
    Visit::pay(&home).code(0).finds("user", level, "root").finds_no("root_worker");
    let _worker = TestWorker::new(&home, "w1");
    let visit = Visit::pay_among_others(&home).code(0);
    if is_root() {
        visit.finds("root_worker", "warning", "worker w1 runs as root");
    } else {
        visit.finds_no("root_worker");
    }
}

#[test]
fn a_pipe_in_place_of_the_gate_keeps_nobody_waiting() {
    let home = Home::with_jobs(&["a"]);
    let gate = gate_path(&home.database());
    std::fs::remove_file(&gate).expect("it was there");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, mode).expect("a pipe");
    Visit::pay(&home).code(0).finds_no("gate");
}
