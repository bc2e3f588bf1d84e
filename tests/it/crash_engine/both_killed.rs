//! FAULTS 24: kill -9 of a supervisor and its workers at once. Another pool, or the next one, finds their processes.

use domain::job::life::StateName;

use super::harness::CrashHome;
use super::processes::wait;

/// Each can be recognised by one thing only: the environment, the lock, or the session.
const ESCAPES: &str = "escape by_cookie setsid bash unlock.sh; escape by_lock setsid env -i PATH=$PATH;
                       escape by_session env -i PATH=$PATH bash unlock.sh; (escape grandchild setsid)";
const ESCAPEES: [&str; 4] = ["by_cookie", "by_lock", "by_session", "grandchild"];

fn with_a_running_job() -> CrashHome {
    let ground = CrashHome::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground
}

#[test]
fn fault_24_another_pool_kills_their_processes_before_the_job_runs_again() {
    let ground = with_a_running_job();
    let pool = ground.first_pool();
    ground.pool();
    ground.recovers("a", || ground.kill_pool(pool));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_24_the_next_pool_does_so_if_no_other_is_running() {
    let ground = with_a_running_job();
    ground.kill_pool(ground.first_pool());
    wait("no worker is alive", || ground.workers().is_empty());
    assert_eq!(ground.run(&["worker", "list", "--json"]).ok().json(), serde_json::json!([]));
    assert_eq!(ground.state("a"), StateName::Processing);
    ground.run(&["status"]).ok().shows("1 job waits, but no worker is running");
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_24_orphans_are_found_when_their_shell_has_ended_too() {
    let ground = CrashHome::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; until_there go; exit 0; }}"));
    let pool = ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground.kill_pool(pool);
    ground.put("go");
    wait("the shell has ended", || !ground.has_shell("a", 1));
    ground.pool();
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_31_one_of_two_reapers_wins() {
    let ground = with_a_running_job();
    let pool = ground.first_pool();
    ground.pool();
    ground.pool_of(&["--count", "2"]);
    assert_eq!(ground.workers().len(), 4, "pools add up");
    ground.recovers("a", || ground.kill_pool(pool));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}
