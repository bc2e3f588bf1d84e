//! FAULTS 24: kill -9 of a supervisor and its workers at once. Another pool, or the next one, finds their processes.

use domain::job::life::StateName;

use super::harness::CrashHome;
use super::processes::wait;
use super::worker_killed::{homes_with_and_without_groups, pause};

/// Each can be recognised by one thing only: the environment, the lock, or the session.
const ESCAPES: &str = "escape by_cookie setsid bash unlock.sh; escape by_lock setsid env -i PATH=$PATH;
                       escape by_session env -i PATH=$PATH bash unlock.sh; (escape grandchild setsid)";
const ESCAPEES: [&str; 4] = ["by_cookie", "by_lock", "by_session", "grandchild"];

fn with_a_running_job() -> CrashHome {
    let crash_home = CrashHome::new();
    crash_home.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    crash_home.pool();
    crash_home.runs("a", 1, &ESCAPEES);
    crash_home
}

#[test]
fn fault_24_another_pool_kills_their_processes_before_the_job_runs_again() {
    let crash_home = with_a_running_job();
    let pool = crash_home.first_pool();
    crash_home.pool();
    crash_home.recovers("a", || crash_home.kill_pool(pool));
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_24_the_next_pool_does_so_if_no_other_is_running() {
    let crash_home = with_a_running_job();
    crash_home.kill_pool(crash_home.first_pool());
    wait("no worker is alive", || crash_home.workers().is_empty());
    assert_eq!(crash_home.run(&["worker", "list", "--json"]).ok().json(), serde_json::json!([]));
    assert_eq!(crash_home.state("a"), StateName::Processing);
    crash_home.run(&["status"]).ok().shows("1 job waits, but no worker is running");
    crash_home.recovers("a", || _ = crash_home.pool());
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_24_a_paused_job_runs_again_after_worker_and_supervisor_were_killed() {
    for crash_home in homes_with_and_without_groups() {
        crash_home.job("a", "first && { escape child env; escape daemon setsid; hang; }");
        let pool = crash_home.pool();
        crash_home.runs("a", 1, &["child", "daemon"]);
        pause(&crash_home, "a");
        crash_home.kill_pool(pool);
        wait("no worker is alive", || crash_home.workers().is_empty());
        assert!(crash_home.has_shell("a", 1), "no process is there that could kill it");
        crash_home.recovers("a", || _ = crash_home.pool());
        assert!(!crash_home.has_shell("a", 1));
        crash_home.finish();
        assert_eq!(crash_home.story("a"), "completed: lost success");
    }
}

#[test]
fn fault_24_orphans_are_found_when_their_shell_has_ended_too() {
    let crash_home = CrashHome::new();
    crash_home.job("a", &format!("first && {{ {ESCAPES}; until_there go; exit 0; }}"));
    let pool = crash_home.pool();
    crash_home.runs("a", 1, &ESCAPEES);
    crash_home.kill_pool(pool);
    crash_home.put("go");
    wait("the shell has ended", || !crash_home.has_shell("a", 1));
    crash_home.pool();
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}

#[test]
fn fault_31_one_of_two_reapers_wins() {
    let crash_home = with_a_running_job();
    let pool = crash_home.first_pool();
    crash_home.pool();
    crash_home.pool_of(&["--count", "2"]);
    assert_eq!(crash_home.workers().len(), 4, "pools add up");
    crash_home.recovers("a", || crash_home.kill_pool(pool));
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: lost success");
}
