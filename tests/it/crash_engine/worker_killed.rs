//! FAULTS 23: kill -9 of a worker in mid-job.

use rustix::process::Signal;

use super::harness::{Ground, kill};

/// Ways to get away from a shell, and the names of those who went.
const ESCAPES: &str = "escape child env; escape daemon setsid; escape bare setsid env -i PATH=$PATH;
                       escape deaf setsid bash unlock.sh; (escape grandchild setsid);
                       escape nothing setsid env -i PATH=$PATH bash unlock.sh";
const ESCAPEES: [&str; 6] = ["child", "daemon", "bare", "deaf", "grandchild", "nothing"];

#[test]
fn fault_23_a_worker_that_is_killed_takes_along_all_that_it_runs() {
    let ground = Ground::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    let pool = ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_23_the_other_workers_of_its_pool_lose_nothing() {
    let ground = Ground::new();
    ground.pool_of(&["--count", "2"]);
    ground.job("a", "first && hang");
    ground.runs("a", 1, &[]);
    let first = ground.worker_that_runs("a");
    ground.job("b", "escape daemon setsid; until_there go");
    ground.runs("b", 1, &["daemon"]);
    ground.recovers("a", || kill(first, Signal::KILL));
    ground.wait("a is done", || ground.story("a") == "completed: lost success");
    ground.put("go");
    ground.finish();
    assert_eq!(ground.story("b"), "completed: success");
}

#[test]
fn a_log_that_its_worker_did_not_finish_can_be_read() {
    let ground = Ground::new();
    ground.job("a", "first && { seq 200000; escape daemon env; seq 200000 900000; hang; }");
    let pool = ground.pool();
    ground.runs("a", 1, &["daemon"]);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    ground.finish();
    ground.run(&["logs", "a", "--attempt", "1"]).ok().shows("1\n2\n3\n").shows("\n100000\n");
    assert_eq!(ground.story("a"), "completed: lost success");
}
