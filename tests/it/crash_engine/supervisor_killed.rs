//! FAULTS 24: kill -9 of a supervisor whose workers are alive.

use rustix::process::Signal;

use super::harness::CrashHome;
use super::processes::{kill, wait};

#[test]
fn fault_24_workers_without_a_supervisor_finish_their_jobs() {
    let ground = CrashHome::new();
    ground.job("a", "escape daemon setsid; until_there go");
    let pool = ground.pool_of(&["--count", "2"]);
    ground.runs("a", 1, &["daemon"]);
    kill(pool.supervisor, Signal::KILL);
    wait("the idle worker has ended and the other drains", || ground.states_of_workers() == ["draining"]);
    ground.job("b", "true");
    ground.put("go");
    ground.wait_until_no_process_is_left();
    assert_eq!((ground.story("a"), ground.story("b")), ("completed: success".into(), "pending:".into()));
    assert_eq!(ground.worker_files(), [] as [String; 0]);
}

#[test]
fn fault_24_another_pool_recovers_a_worker_that_is_killed_while_it_drains() {
    let ground = CrashHome::new();
    ground.job("a", "first && { escape daemon setsid; hang; }");
    let pool = ground.pool();
    ground.runs("a", 1, &["daemon"]);
    ground.pool();
    kill(pool.supervisor, Signal::KILL);
    wait("it drains", || ground.states_of_workers() == ["draining", "running"]);
    ground.recovers("a", || kill(ground.worker_of(pool), Signal::KILL));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}
