//! The system calls of one `enqueue` on an existing store that no other process has open.
//!
//! Counted from the first access to the home, because the calls at process start depend on how the program was linked.

use super::strace;
use super::strace::Calls;
use crate::cli::harness::Home;

/// Counted: 136.
const MAX_CALLS: usize = 150;
/// Each process reads the write-ahead log of the earlier ones, and every sixth checkpoints it. Counted: 192.
const MAX_CALLS_IN_A_ROW: usize = 212;
/// Six pages, each with a header.
const MAX_WRITES: usize = 12;
const MAX_BYTES: u64 = 6 * (2048 + 24);
/// Enough for more than one checkpoint.
const ENQUEUES_IN_A_ROW: usize = 15;

const SYNCS: [&str; 4] = ["fsync", "fdatasync", "sync_file_range", "msync"];
const WRITES: [&str; 4] = ["write", "pwrite64", "writev", "pwritev"];

#[test]
fn one_enqueue_makes_few_calls_and_one_sync() {
    if !strace::is_installed() {
        return;
    }
    let home = home_with_short_log();
    let calls = enqueue(&home);
    assert_eq!(calls.named(&SYNCS).len(), 1, "one sync:\n{calls}");
    assert!(calls.count() <= MAX_CALLS, "{} calls:\n{calls}", calls.count());
    let written = writes_to_log(&calls);
    assert!(!written.is_empty() && written.len() <= MAX_WRITES, "writes to the log: {written:?}");
    let bytes: u64 = written.iter().sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes written to the log: {written:?}");
}

#[test]
fn an_enqueue_after_many_makes_no_more_calls_than_the_first() {
    if !strace::is_installed() {
        return;
    }
    let home = home_with_short_log();
    let runs: Vec<Calls> = (0..ENQUEUES_IN_A_ROW).map(|_| enqueue(&home)).collect();
    let counts: Vec<usize> = runs.iter().map(Calls::count).collect();
    assert!(counts.iter().all(|count| *count <= MAX_CALLS_IN_A_ROW), "{counts:?}");
    let syncs: Vec<usize> = runs.iter().map(|calls| calls.named(&SYNCS).len()).collect();
    let checkpoints = syncs.iter().filter(|count| **count > 1).count();
    assert!(
        (1..=ENQUEUES_IN_A_ROW / 5).contains(&checkpoints),
        "the log is checkpointed occasionally: {syncs:?}"
    );
    assert!(syncs.iter().all(|count| (1..=4).contains(count)), "{syncs:?}");
}

/// A store whose write-ahead log was restarted by the last `enqueue` but one.
fn home_with_short_log() -> Home {
    let home = Home::new();
    for _ in 0..3 {
        home.run(["enqueue", "-q", "--", "true"]).ok();
    }
    home
}

fn enqueue(home: &Home) -> Calls {
    let call = home.call(["enqueue", "--", "true"]);
    Calls::of(call, home.folder()).on_home(&home.path()).without_folders_above(&home.path())
}

/// The number of bytes of each write to the log.
fn writes_to_log(calls: &Calls) -> Vec<u64> {
    let log = calls.descriptor("queue.db-wal\"").expect("the log is opened");
    let is_to_log = |call: &&&str| call.contains(&format!("({log}, "));
    let written = calls.named(&WRITES);
    let results = written.iter().filter(is_to_log).filter_map(|call| call.rsplit_once(" = "));
    results.map(|(_, bytes)| bytes.parse().expect("a number of bytes")).collect()
}
