//! FAULTS 26: a crash at each fail-point of an attempt, of a worker's life, and of a recovery.

use domain::job::life::StateName;
use rustix::process::Signal;

use super::harness::CrashHome;
use super::ledger::LineKind;
use super::processes::{kill, wait};

/// Runs two jobs with a worker that dies once at this fail-point; returns the stories of the jobs.
fn stories_after_death_at(point: &str) -> (CrashHome, [String; 2]) {
    let crash_home = CrashHome::new();
    crash_home.job("a", "true");
    crash_home.job("b", "true");
    let pool = crash_home.pool_dying_at(point, &["--until-empty"]);
    assert!(crash_home.ending_of(pool).success(), "{point}: the pool ends well");
    assert!(crash_home.has_died(), "{point} was never reached");
    crash_home.check();
    let stories = ["a", "b"].map(|id| crash_home.story(id));
    (crash_home, stories)
}

const DONE: &str = "completed: success";
/// Claimed and never started, which does not count as a failure.
const RELEASED: &str = "completed: released success";
/// It may have run.
const LOST: &str = "completed: lost success";

#[test]
fn fault_26_a_worker_that_dies_as_it_starts_or_stops_holds_no_lease() {
    for point in [
        "register.before_commit",
        "register.after_commit",
        "extend.before_commit",
        "extend.after_commit",
        "set_worker_state.before_commit",
        "set_worker_state.after_commit",
        "worker.before_retire",
        "worker.after_retire",
    ] {
        assert_eq!(stories_after_death_at(point).1, [DONE, DONE], "{point}");
    }
}

#[test]
fn fault_26_a_job_that_was_claimed_and_not_started_is_released() {
    for (point, expected) in [
        ("exchange.before_commit", DONE),
        ("exchange.after_commit", RELEASED),
        ("ledger.after_claim", RELEASED),
    ] {
        assert_eq!(stories_after_death_at(point).1, [expected, DONE], "{point}");
    }
}

#[test]
fn fault_26_an_attempt_that_may_have_started_is_lost() {
    for (point, has_ended) in [
        ("attempt.before_spawn", false),
        ("attempt.after_spawn", false),
        ("attempt.after_record", false),
        ("attempt.after_exit", true),
        ("attempt.before_settle", true),
        ("ledger.before_settle", true),
    ] {
        let (crash_home, stories) = stories_after_death_at(point);
        assert_eq!(stories, [LOST, DONE], "{point}");
        assert!(crash_home.has(LineKind::End, "a", 1) || !has_ended, "{point}");
    }
}

#[test]
fn fault_26_a_settled_attempt_stays_settled() {
    // The next job was claimed in the same commit.
    assert_eq!(stories_after_death_at("ledger.after_settle").1, [DONE, RELEASED]);
}

#[test]
fn fault_26_a_worker_whose_supervisor_dies_before_it_is_up_ends_too() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "true");
    let pool = crash_home.pool_dying_at("supervisor.after_start", &[]);
    crash_home.ending_of(pool);
    crash_home.wait_until_no_process_is_left();
    crash_home.pool();
    crash_home.finish();
    assert_eq!(crash_home.state("a"), StateName::Completed);
}

#[test]
fn fault_26_the_next_pool_finishes_a_recovery_in_which_the_supervisor_died() {
    for point in
        ["supervisor.before_reap", "reap.before_commit", "reap.after_commit", "supervisor.after_reap"]
    {
        let crash_home = CrashHome::new();
        crash_home.job("a", "first && { escape daemon setsid; hang; }");
        let pool = crash_home.pool_dying_at(point, &[]);
        crash_home.runs("a", 1, &["daemon"]);
        kill(crash_home.worker_of(pool), Signal::KILL);
        wait("the supervisor dies", || crash_home.has_died());
        crash_home.pool();
        crash_home.finish();
        assert_eq!(crash_home.story("a"), LOST, "{point}");
    }
}

#[test]
fn fault_26_a_worker_that_dies_while_recovering_another_is_replaced() {
    for point in ["reaper.before_reap", "reap.before_commit", "reap.after_commit", "reaper.after_reap"] {
        let crash_home = CrashHome::new();
        crash_home.job("a", "first && { escape daemon setsid; hang; }");
        let pool = crash_home.pool();
        crash_home.runs("a", 1, &["daemon"]);
        crash_home.pool_dying_at(point, &[]);
        crash_home.recovers("a", || crash_home.kill_pool(pool));
        crash_home.finish();
        assert!(crash_home.has_died(), "{point} was never reached");
        assert_eq!(crash_home.story("a"), LOST, "{point}");
    }
}

#[test]
fn fault_26_a_command_is_on_record_as_soon_as_it_runs() {
    // Found by its session alone, which the record names.
    let without = vec![("QUEUECTL_WITHOUT".to_owned(), "containment".into())];
    let crash_home = CrashHome::new().under(without);
    let pool = crash_home.pool_dying_at("attempt.after_spawn", &[]);
    wait("a pool is up", || crash_home.workers_of(pool).len() == 1);
    kill(pool.supervisor, Signal::STOP);
    crash_home.job("a", "first && { escape in_session env -i PATH=$PATH bash unlock.sh; hang; }");
    crash_home.runs("a", 1, &["in_session"]);
    kill(pool.supervisor, Signal::KILL);
    crash_home.pool();
    crash_home.finish();
    assert_eq!(crash_home.story("a"), LOST);
}
