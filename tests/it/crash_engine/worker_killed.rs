//! FAULTS 23: kill -9 of a worker while it runs a job.

use rustix::process::Signal;

use super::harness::CrashHome;
use super::processes::{kill, kill_all, wait};

/// Ways to escape from a shell, and the names of the processes that did.
const ESCAPES: &str = "escape child env; escape daemon setsid; escape bare setsid env -i PATH=$PATH;
                       escape deaf setsid bash unlock.sh; (escape grandchild setsid);
                       escape nothing setsid env -i PATH=$PATH bash unlock.sh";
const ESCAPEES: [&str; 6] = ["child", "daemon", "bare", "deaf", "grandchild", "nothing"];

#[test]
fn fault_23_all_processes_of_a_killed_worker_are_killed() {
    let ground = CrashHome::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    let pool = ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_23_other_workers_of_the_pool_lose_nothing() {
    let ground = CrashHome::new();
    ground.pool_of(&["--count", "2"]);
    ground.job("a", "first && hang");
    ground.runs("a", 1, &[]);
    let first = ground.worker_that_runs("a");
    ground.job("b", "escape daemon setsid; until_there go");
    ground.runs("b", 1, &["daemon"]);
    ground.recovers("a", || kill(first, Signal::KILL));
    wait("a is done", || ground.story("a") == "completed: lost success");
    ground.put("go");
    ground.finish();
    assert_eq!(ground.story("b"), "completed: success");
}

#[test]
fn fault_23_an_unfinished_log_can_be_read() {
    let ground = CrashHome::new();
    ground.job("a", "first && { seq 200000; escape daemon env; seq 200000 900000; hang; }");
    let pool = ground.pool();
    ground.runs("a", 1, &["daemon"]);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    ground.finish();
    ground.run(&["logs", "a", "--attempt", "1"]).ok().shows("1\n2\n3\n").shows("\n100000\n");
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_34_a_worker_that_is_killed_while_its_pool_stops_is_not_replaced() {
    let ground = CrashHome::new();
    ground.job("a", "first && { escape daemon setsid; hang; }");
    let pool = ground.pool();
    ground.runs("a", 1, &["daemon"]);
    kill(pool.supervisor, Signal::TERM);
    wait("the worker drains", || ground.states_of_workers() == ["draining"]);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    assert!(ground.ending_of(pool).success());
    ground.check();
    assert_eq!(ground.story("a"), "pending: lost");
}

#[test]
fn fault_23_a_pool_recovers_when_all_its_workers_die_at_once() {
    let ground = CrashHome::new();
    let pool = ground.pool_of(&["--count", "3"]);
    ground.jobs(3, |_| "first && { escape daemon setsid; hang; }");
    for id in ground.ids() {
        ground.runs(&id, 1, &["daemon"]);
    }
    kill_all(&ground.workers_of(pool), Signal::KILL);
    ground.finish();
    assert_eq!(
        ground.ids().iter().map(|id| ground.story(id)).collect::<Vec<_>>(),
        ["completed: lost success"; 3]
    );
}

#[test]
fn fault_23_a_cancelled_job_is_not_retried_when_its_worker_is_killed() {
    let ground = CrashHome::new();
    ground.job("a", "hang");
    let pool = ground.pool();
    ground.runs("a", 1, &[]);
    let worker = ground.worker_of(pool);
    kill(worker, Signal::STOP);
    ground.run(&["-q", "cancel", "a"]).ok();
    kill(worker, Signal::KILL);
    ground.finish();
    assert_eq!(ground.story("a"), "cancelled: lost");
}
