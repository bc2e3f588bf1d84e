//! FAULTS 26: a crash at each seam of an attempt, of a worker's life, and of a recovery.

use domain::job::life::StateName;
use rustix::process::Signal;

use super::harness::Ground;
use super::ledger::What;
use super::processes::{kill, wait};

/// Two jobs; the worker dies once at this place; all ends well. What became of the jobs?
fn stories_after_death_at(place: &str) -> (Ground, [String; 2]) {
    let ground = Ground::new();
    ground.job("a", "true");
    ground.job("b", "true");
    let pool = ground.pool_dying_at(place, &["--until-empty"]);
    assert!(ground.ending_of(pool).success(), "{place}: the pool ends well");
    assert!(ground.has_died(), "nobody came by {place}");
    ground.check();
    let stories = ["a", "b"].map(|id| ground.story(id));
    (ground, stories)
}

const DONE: &str = "completed: success";
/// Claimed and never started: nobody's fault.
const RELEASED: &str = "completed: released success";
/// It may have run.
const LOST: &str = "completed: lost success";

#[test]
fn fault_26_a_worker_that_dies_as_it_begins_or_ends_holds_nothing() {
    for place in [
        "register.before_commit",
        "register.after_commit",
        "extend.before_commit",
        "extend.after_commit",
        "set_worker_state.before_commit",
        "set_worker_state.after_commit",
        "worker.before_retire",
        "worker.after_retire",
    ] {
        assert_eq!(stories_after_death_at(place).1, [DONE, DONE], "{place}");
    }
}

#[test]
fn fault_26_what_was_claimed_and_not_started_is_released() {
    for (place, expected) in [
        ("exchange.before_commit", DONE),
        ("exchange.after_commit", RELEASED),
        ("ledger.after_claim", RELEASED),
    ] {
        assert_eq!(stories_after_death_at(place).1, [expected, DONE], "{place}");
    }
}

#[test]
fn fault_26_what_may_have_been_started_is_lost() {
    for (place, has_ended) in [
        ("attempt.before_spawn", false),
        ("attempt.after_spawn", false),
        ("attempt.after_record", false),
        ("attempt.after_exit", true),
        ("attempt.before_settle", true),
        ("ledger.before_settle", true),
    ] {
        let (ground, stories) = stories_after_death_at(place);
        assert_eq!(stories, [LOST, DONE], "{place}");
        assert!(ground.has(What::End, "a", 1) || !has_ended, "{place}");
    }
}

#[test]
fn fault_26_what_was_settled_stays_so() {
    // The next job was claimed in the same commit.
    assert_eq!(stories_after_death_at("ledger.after_settle").1, [DONE, RELEASED]);
}

#[test]
fn fault_26_a_worker_whose_supervisor_dies_before_it_is_up_ends_too() {
    let ground = Ground::new();
    ground.job("a", "true");
    let pool = ground.pool_dying_at("supervisor.after_start", &[]);
    ground.ending_of(pool);
    ground.is_deserted();
    ground.pool();
    ground.finish();
    assert_eq!(ground.state("a"), StateName::Completed);
}

#[test]
fn fault_26_a_supervisor_that_dies_over_a_dead_worker_is_replaced_by_the_next_pool() {
    for place in
        ["supervisor.before_reap", "reap.before_commit", "reap.after_commit", "supervisor.after_reap"]
    {
        let ground = Ground::new();
        ground.job("a", "first && { escape daemon setsid; hang; }");
        let pool = ground.pool_dying_at(place, &[]);
        ground.runs("a", 1, &["daemon"]);
        kill(ground.worker_of(pool), Signal::KILL);
        wait("the supervisor dies", || ground.has_died());
        ground.pool();
        ground.finish();
        assert_eq!(ground.story("a"), LOST, "{place}");
    }
}

#[test]
fn fault_26_a_worker_that_dies_over_a_dead_one_is_replaced() {
    for place in ["reaper.before_reap", "reap.before_commit", "reap.after_commit", "reaper.after_reap"] {
        let ground = Ground::new();
        ground.job("a", "first && { escape daemon setsid; hang; }");
        let pool = ground.pool();
        ground.runs("a", 1, &["daemon"]);
        ground.pool_dying_at(place, &[]);
        ground.recovers("a", || ground.kill_whole(pool));
        ground.finish();
        assert!(ground.has_died(), "nobody came by {place}");
        assert_eq!(ground.story("a"), LOST, "{place}");
    }
}

#[test]
fn fault_26_what_was_started_by_a_worker_that_never_learned_its_pid_is_found() {
    let ground = Ground::new();
    let pool = ground.pool_dying_at("attempt.after_spawn", &[]);
    wait("a pool is up", || ground.workers_of(pool).len() == 1);
    kill(pool.supervisor, Signal::STOP);
    ground.job("a", "first && { escape in_session env -i PATH=$PATH bash unlock.sh; hang; }");
    ground.runs_unrecorded("a", 1, &["in_session"]);
    kill(pool.supervisor, Signal::KILL);
    ground.pool();
    ground.finish();
    assert_eq!(ground.story("a"), LOST);
}
