//! FAULTS 24: kill -9 of a supervisor and its workers at once. What they ran is found by another pool, or by the next.

use domain::job::life::StateName;

use super::harness::Ground;
use super::processes::wait;

/// Each has shed all marks but one: the environment, the lock, the session.
const ESCAPES: &str = "escape by_cookie setsid bash unlock.sh; escape by_lock setsid env -i PATH=$PATH;
                       escape by_session env -i PATH=$PATH bash unlock.sh; (escape grandchild setsid)";
const ESCAPEES: [&str; 4] = ["by_cookie", "by_lock", "by_session", "grandchild"];

fn with_a_running_job() -> Ground {
    let ground = Ground::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; hang; }}"));
    ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground
}

#[test]
fn fault_24_another_pool_kills_what_they_ran_before_it_runs_again() {
    let ground = with_a_running_job();
    let pool = ground.first_pool();
    ground.pool();
    ground.recovers("a", || ground.kill_whole(pool));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_24_the_next_pool_does_so_where_none_is_left() {
    let ground = with_a_running_job();
    ground.kill_whole(ground.first_pool());
    wait("no worker lives", || ground.workers().is_empty());
    assert_eq!(ground.run(&["worker", "list", "--json"]).ok().json(), serde_json::json!([]));
    assert_eq!(ground.state("a"), StateName::Processing);
    ground.run(&["status"]).ok().shows("1 job waits and no worker is running");
    ground.recovers("a", || _ = ground.pool());
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}

#[test]
fn fault_24_what_is_left_is_found_when_its_shell_has_gone_too() {
    let ground = Ground::new();
    ground.job("a", &format!("first && {{ {ESCAPES}; until_there go; exit 0; }}"));
    let pool = ground.pool();
    ground.runs("a", 1, &ESCAPEES);
    ground.kill_whole(pool);
    ground.put("go");
    wait("the shell has gone", || !ground.has_shell("a", 1));
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
    ground.recovers("a", || ground.kill_whole(pool));
    ground.finish();
    assert_eq!(ground.story("a"), "completed: lost success");
}
