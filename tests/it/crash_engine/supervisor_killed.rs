//! FAULTS 24: kill -9 of a supervisor whose workers are alive.

use rustix::process::Signal;

use super::harness::CrashHome;
use super::processes::{kill, wait};

#[test]
fn fault_24_workers_without_a_supervisor_finish_their_jobs() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "escape daemon setsid; until_there go");
    let pool = crash_home.pool_of(&["--count", "2"]);
    crash_home.runs("a", 1, &["daemon"]);
    kill(pool.supervisor, Signal::KILL);
    wait("the idle worker has ended and the other drains", || crash_home.states_of_workers() == ["draining"]);
    crash_home.job("b", "true");
    crash_home.put("go");
    crash_home.wait_until_no_process_is_left();
    assert_eq!(
        (crash_home.story("a"), crash_home.story("b")),
        ("completed: success".into(), "pending:".into())
    );
    assert_eq!(crash_home.worker_files(), [] as [String; 0]);
}

#[test]
fn fault_24_another_pool_recovers_a_worker_that_is_killed_while_it_drains() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "first && { escape daemon setsid; hang; }");
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &["daemon"]);
    crash_home.pool();
    kill(pool.supervisor, Signal::KILL);
    wait("it drains", || crash_home.states_of_workers() == ["draining", "running"]);
    crash_home.recovers("a", || kill(crash_home.worker_of(pool), Signal::KILL));
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}
