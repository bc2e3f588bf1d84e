//! FAULTS 23: kill -9 of a worker while it runs a job.

use rustix::process::Signal;

use super::harness::CrashHome;
use super::ledger::LineKind;
use super::processes::{kill, kill_all, wait};
use crate::engine::workers::pause::is_stopped;

/// Ways to escape from a shell, and the names of the processes that did.
const ESCAPES: &str = "escape child env; escape daemon setsid; escape bare setsid env -i PATH=$PATH;
                       escape deaf setsid bash unlock.sh; (escape grandchild setsid);
                       escape nothing setsid env -i PATH=$PATH bash unlock.sh";
const ESCAPEES: [&str; 6] = ["child", "daemon", "bare", "deaf", "grandchild", "nothing"];

#[test]
fn fault_23_all_processes_of_a_killed_worker_are_killed() {
    let crash_home = CrashHome::new();
    crash_home.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &ESCAPEES);
    crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_23_other_workers_of_the_pool_lose_nothing() {
    let crash_home = CrashHome::new();
    crash_home.pool_of(&["--count", "2"]);
    crash_home.job("a", "first && hang");
    crash_home.runs("a", 1, &[]);
    let first = crash_home.worker_that_runs("a");
    crash_home.job("b", "escape daemon setsid; until_there go");
    crash_home.runs("b", 1, &["daemon"]);
    crash_home.recovers("a", || kill(first, Signal::KILL));
    wait("a is done", || crash_home.story("a") == "completed: lost success");
    crash_home.put("go");
    crash_home.finish();
    assert_eq!(crash_home.story("b"), "completed: success");
}

#[test]
fn fault_23_an_unfinished_log_can_be_read() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "first && { seq 200000; escape daemon env; seq 200000 900000; hang; }");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &["daemon"]);
    crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
    crash_home.finish();
    crash_home.run(&["logs", "a", "--attempt", "1"]).ok().shows("1\n2\n3\n").shows("\n100000\n");
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_34_a_worker_that_is_killed_while_its_pool_stops_is_not_replaced() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "first && { escape daemon setsid; hang; }");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &["daemon"]);
    kill(pool.supervisor, Signal::TERM);
    wait("the worker drains", || crash_home.states_of_workers() == ["draining"]);
    crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
    assert!(crash_home.ending_of(pool).success());
    crash_home.check();
    assert_eq!(crash_home.story("a"), "pending: lost");
}

#[test]
fn fault_23_a_pool_recovers_when_all_its_workers_die_at_once() {
    let crash_home = CrashHome::new();
    let pool = crash_home.pool_of(&["--count", "3"]);
    crash_home.jobs(3, |_| "first && { escape daemon setsid; hang; }");
    for id in crash_home.ids() {
        crash_home.runs(&id, 1, &["daemon"]);
    }
    kill_all(&crash_home.workers_of(pool), Signal::KILL);
    crash_home.finish();
    assert_eq!(
        crash_home.ids().iter().map(|id| crash_home.story(id)).collect::<Vec<_>>(),
        ["completed: lost success"; 3]
    );
}

/// A home whose pools stop paused jobs in their control groups, and one where they stop them with signals.
pub(crate) fn homes_with_and_without_groups() -> Vec<CrashHome> {
    let mut homes = vec![CrashHome::new()];
    // In released builds no guard can be switched off.
    if cfg!(debug_assertions) {
        homes.push(CrashHome::new().under(vec![("QUEUECTL_WITHOUT".to_owned(), "containment".into())]));
    }
    homes
}

/// Pauses the first attempt of a job, and waits until its shell is stopped.
pub(crate) fn pause(crash_home: &CrashHome, id: &str) {
    let ledger = crash_home.ledger();
    let start = ledger.iter().find(|line| line.kind == LineKind::Start && line.job == id);
    let shell = start.expect("it has started").who.parse().expect("a pid");
    crash_home.run(&["-q", "pause", id]).ok();
    wait("its shell is stopped", || is_stopped(&crash_home.home, shell));
}

#[test]
fn fault_23_a_paused_job_runs_again_when_its_worker_is_killed() {
    for crash_home in homes_with_and_without_groups() {
        crash_home.job("a", "first && { escape child env; escape daemon setsid; hang; }");
        let pool = crash_home.pool();
        crash_home.runs("a", 1, &["child", "daemon"]);
        pause(&crash_home, "a");
        crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
        crash_home.finish();
        assert_eq!(crash_home.story("a"), "completed: lost success");
    }
}

#[test]
fn fault_23_a_cancelled_job_is_not_retried_when_its_worker_is_killed() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "hang");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    let worker = crash_home.worker_of(pool);
    kill(worker, Signal::STOP);
    crash_home.run(&["-q", "cancel", "a"]).ok();
    kill(worker, Signal::KILL);
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "cancelled: lost");
}
