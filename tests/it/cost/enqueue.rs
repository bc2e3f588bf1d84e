//! What one `enqueue` asks of the system, on a store that is there already and that nobody else has open.
//!
//! Counted from its first look into the home: what it takes to start a program depends on how it was linked.

use super::strace::{self, Calls};
use crate::cli::harness::Home;

/// It was 136.
const MOST_CALLS: usize = 150;
/// Each reads the log that those before it wrote, and every sixth folds it in: that was 192.
const MOST_CALLS_IN_A_ROW: usize = 212;
/// Six pages, each with a header.
const MOST_WRITES: usize = 12;
const MOST_BYTES: u64 = 6 * (2048 + 24);
/// As many as it takes for the log to be folded in more than once.
const IN_A_ROW: usize = 15;

const SYNCS: [&str; 4] = ["fsync", "fdatasync", "sync_file_range", "msync"];
const WRITES: [&str; 4] = ["write", "pwrite64", "writev", "pwritev"];

#[test]
fn one_enqueue_makes_few_calls_and_one_sync() {
    if !strace::is_there() {
        return;
    }
    let home = home_with_short_log();
    let calls = enqueue(&home);
    assert_eq!(calls.named(&SYNCS).len(), 1, "one sync:\n{calls}");
    assert!(calls.count() <= MOST_CALLS, "{} calls:\n{calls}", calls.count());
    let written = writes_to_log(&calls);
    assert!(!written.is_empty() && written.len() <= MOST_WRITES, "writes to the log: {written:?}");
    let bytes: u64 = written.iter().sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes are written to the log: {written:?}");
}

#[test]
fn an_enqueue_after_many_makes_no_more_calls_than_the_first() {
    if !strace::is_there() {
        return;
    }
    let home = home_with_short_log();
    let runs: Vec<Calls> = (0..IN_A_ROW).map(|_| enqueue(&home)).collect();
    let counts: Vec<usize> = runs.iter().map(Calls::count).collect();
    assert!(counts.iter().all(|count| *count <= MOST_CALLS_IN_A_ROW), "{counts:?}");
    let syncs: Vec<usize> = runs.iter().map(|calls| calls.named(&SYNCS).len()).collect();
    let folds = syncs.iter().filter(|count| **count > 1).count();
    assert!((1..=IN_A_ROW / 5).contains(&folds), "the log is folded in now and then: {syncs:?}");
    assert!(syncs.iter().all(|count| (1..=4).contains(count)), "{syncs:?}");
}

/// A store in which the last `enqueue` but one began the log anew.
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

/// How many bytes each of the writes to the log had.
fn writes_to_log(calls: &Calls) -> Vec<u64> {
    let log = calls.descriptor("queue.db-wal\"").expect("the log is opened");
    let is_to_log = |call: &&&str| call.contains(&format!("({log}, "));
    let written = calls.named(&WRITES);
    let results = written.iter().filter(is_to_log).filter_map(|call| call.rsplit_once(" = "));
    results.map(|(_, bytes)| bytes.parse().expect("a number of bytes")).collect()
}
