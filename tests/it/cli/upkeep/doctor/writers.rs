//! A process starts to write while doctor reads an idle queue without locks.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(debug_assertions)]
use std::time::Duration;

use store::sqlite::SqliteStore;
use store::{JobFilter, Page, Store};
use sys::clock::SystemClock;

use super::tamper;
#[cfg(debug_assertions)]
use crate::chaos::shim::Shim;
use crate::cli::harness::{Home, RunResult};
#[cfg(debug_assertions)]
use crate::crash_engine::processes::wait;

/// More than the write-ahead log holds before a checkpoint.
const JOBS: usize = 3_000;
const ROUNDS: usize = 10;

fn enqueue(home: &Home, name: &str) -> RunResult {
    // Spread over the indexes, so that many pages change.
    let line = |at: usize| {
        let (id, priority) = (at * 7_919 % 100_003, at % 13);
        format!("{{\"id\":\"{name}-{id}\",\"priority\":{priority},\"command\":\": {}\"}}\n", "x".repeat(900))
    };
    home.call(["enqueue", "-q", "-"]).with_stdin((0..JOBS).map(line).collect::<String>()).run()
}

/// Removes everything but the database file, as after copying only that file.
fn leave_alone(home: &Home) {
    tamper(home, "select 1");
    for suffix in ["-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", home.database().display()));
        assert!(!file.exists() || fs::remove_file(file).is_ok());
    }
}

/// How many of the pages are read before the writer starts.
#[cfg(debug_assertions)]
const READ_BEFORE: u64 = 200;

#[cfg(debug_assertions)]
#[test]
fn a_queue_being_opened_is_not_reported_as_corrupt() {
    let home = Home::new();
    enqueue(&home, "first").ok();
    leave_alone(&home);
    let shim = Shim::new(&home);
    shim.slow(Duration::from_millis(2));
    let ran = std::thread::scope(|scope| {
        let call = home.call(["doctor", "--full", "--json"]).envs(shim.variables());
        let doctor = scope.spawn(|| call.run());
        wait("doctor is reading", || shim.delayed() > READ_BEFORE || doctor.is_finished());
        assert!(!doctor.is_finished(), "it was quicker");
        enqueue(&home, "second").ok();
        shim.heal();
        doctor.join().expect("doctor ends")
    });
    ran.ok().shows("intact, including its indexes");
}

#[test]
fn a_read_only_store_sees_later_writes() {
    let home = Home::with_jobs(&["a"]);
    leave_alone(&home);
    let store = SqliteStore::open_read_only(&home.database(), Arc::new(SystemClock)).expect("it opens");
    let store: &dyn Store = &store;
    let count = || {
        let everything = Page { limit: usize::MAX, after: None };
        store.list(&JobFilter::default(), &everything).expect("the jobs").len()
    };
    assert_eq!(count(), 1);
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    assert_eq!(count(), 2, "it is in the log, which was not there");
    enqueue(&home, "many").ok();
    assert_eq!(count(), 2 + JOBS);
}

#[test]
fn a_queue_being_created_is_not_reported_as_missing() {
    for _ in 0..ROUNDS {
        let home = Home::new();
        let runs = std::thread::scope(|scope| {
            let maker = scope.spawn(|| home.run(["enqueue", "-q", "--", "true"]).ok());
            let mut runs = Vec::new();
            while !maker.is_finished() {
                runs.push(home.run(["doctor", "--json"]));
            }
            maker.join().expect("it is made");
            runs
        });
        for run in runs {
            run.ok();
        }
    }
}
