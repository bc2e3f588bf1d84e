//! A change of many jobs by a filter needs as much memory as one of few: it holds no list of them.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::cli::harness::Home;

/// Several windows of a bulk change, and more than fill the cache of the database.
const FEW_JOBS: usize = 16_000;
const MANY_JOBS: usize = 40_000;
/// Pages of 4 KiB. The ids of the other jobs alone would need more.
const MAX_MORE_FAULTS: u64 = 250;

/// A queue of jobs with a tag.
fn tagged(count: usize) -> Home {
    let home = Home::new();
    home.run(["config", "set", "durability", "normal"]).ok();
    let mut command = home.call(["enqueue", "-q", "-"]).into_command();
    let mut enqueue = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut lines = enqueue.stdin.take().expect("a pipe");
    for _ in 0..count {
        lines.write_all(b"{\"command\":\"true\",\"tags\":[\"x\"]}\n").expect("written");
    }
    drop(lines);
    assert!(enqueue.wait().expect("it ends").success());
    home
}

/// The pages that a change of all of them touches for the first time.
fn faults(count: usize) -> u64 {
    let home = tagged(count);
    let mut command = home.call(["cancel", "-q", "--tag", "x", "--yes"]).into_command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
    // It has ended but is not reaped, so the system still tells what it used.
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        .expect("it ends");
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("what it used");
    assert!(child.wait().expect("it is reaped").success());
    assert_eq!(home.run(["status", "--json"]).ok().json()["jobs"]["cancelled"], count);
    let after_name = stat.rsplit_once(") ").expect("a name in parentheses").1;
    after_name.split(' ').nth(7).expect("minor faults").parse().expect("a number")
}

#[test]
fn memory_does_not_grow_with_the_number_of_jobs() {
    let (few, many) = (faults(FEW_JOBS), faults(MANY_JOBS));
    assert!(many <= few + MAX_MORE_FAULTS, "{FEW_JOBS} jobs: {few} page faults, {MANY_JOBS} jobs: {many}");
}
