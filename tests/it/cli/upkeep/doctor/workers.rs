//! Dead and hung workers, their leftover files, and the holder of the gate.

use std::fs::File;
use std::time::{Duration, SystemTime};

use store::sqlite::gate_path;
use sys::fs::lock::TimedLock;
use sys::process::lockers_of;

use super::{Diagnosis, tamper};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, is_root};

#[test]
fn a_dead_worker_is_reported() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    Diagnosis::of_busy(&home).code(0).finds("workers", "ok", "1 running").finds_no("dead_worker");
    drop(worker);
    Diagnosis::of(&home)
        .code(0)
        .finds("dead_worker", "warning", "worker w1 (process 4242) died; 1 job waits to be recovered")
        .finds("workers", "ok", "none running")
        .advises("queuectl worker start")
        .finds_no("worker_files");

    tamper(&home, "update workers set boot_id = 'another'");
    Diagnosis::of(&home).finds("dead_worker", "warning", "was running when the machine went down");
}

#[test]
fn a_hung_worker_is_reported() {
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
    Diagnosis::of_busy(&home).finds_no("hung_worker");

    let lock = File::options().write(true).open(home.path().join("workers/w1.lock")).expect("its lock");
    lock.set_modified(SystemTime::now() - Duration::from_secs(3_600)).expect("no sign of life");
    Diagnosis::of_busy(&home).code(0).finds("hung_worker", "warning", "worker w1 (process 4242) hangs");
}

#[test]
fn files_of_ended_workers_are_reported() {
    let home = Home::with_jobs(&["a"]);
    drop(TestWorker::new(&home, "w1"));
    let other = TestWorker::new(&home, "w2");
    Diagnosis::of_busy(&home)
        .code(0)
        .finds("worker_files", "warning", "workers/ contains files of 1 dead worker")
        .finds_no("dead_worker");
    drop(other);
}

#[test]
fn the_holder_of_the_gate_is_named() {
    let home = Home::with_jobs(&["a"]);
    let gate = TimedLock::new(File::open(gate_path(&home.database())).expect("the gate"));
    assert!(gate.take_within(Duration::ZERO).expect("it is locked"));
    let diagnosis = Diagnosis::of(&home).code(0).finds("gate", "warning", "locked for 2s by ");
    let said = diagnosis.findings().into_iter().find(|finding| finding["check"] == "gate").expect("a gate");
    let words: Vec<&str> = said["said"].as_str().expect("text").split(' ').collect();
    let at = words.iter().position(|word| *word == "process").expect("a process is named");
    let pid: u32 = words[at + 1].parse().expect("a pid");
    // A process that another test is starting briefly inherits all descriptors of this one, with their locks.
    assert!(pid == std::process::id() || !lockers_of(&gate_path(&home.database())).contains(&pid), "{said}");
    diagnosis.advises(&format!("ps -fp {pid}"));
    drop(gate);
    Diagnosis::of(&home).code(0).finds("gate", "ok", "");
}

#[test]
fn a_worker_started_by_root_is_reported() {
    let home = Home::new();
    let level = if is_root() { "warning" } else { "ok" };
    Diagnosis::of(&home).code(0).finds("user", level, "root").finds_no("root_worker");
    let _worker = TestWorker::new(&home, "w1");
    let diagnosis = Diagnosis::of_busy(&home).code(0);
    if is_root() {
        diagnosis.finds("root_worker", "warning", "worker w1 runs as root, and so do its jobs");
        let _second = TestWorker::new(&home, "w2");
        let both = "2 workers run as root, and so do their jobs";
        Diagnosis::of_busy(&home).code(0).finds("root_worker", "warning", both);
    } else {
        diagnosis.finds_no("root_worker");
    }
}

#[test]
fn a_fifo_in_place_of_the_gate_does_not_block() {
    let home = Home::with_jobs(&["a"]);
    let gate = gate_path(&home.database());
    std::fs::remove_file(&gate).expect("it was there");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, mode).expect("a pipe");
    Diagnosis::of(&home).code(0).finds_no("gate");
}
