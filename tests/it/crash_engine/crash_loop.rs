//! Jobs that kill their workers, and workers that cannot start.

use std::time::Duration;

use domain::job::life::StateName;
use rustix::process::{Pid, Signal};

use super::harness::CrashHome;
use super::ledger::{Line, LineKind};
use super::processes::{kill_all, wait};

#[test]
fn fault_23_a_job_that_kills_its_worker_becomes_dead_and_the_pool_continues() {
    let crash_home = CrashHome::new();
    crash_home.job("poison", "kill -9 $PPID; hang");
    crash_home.job("b", "true");
    crash_home.pool();
    crash_home.finish();
    assert_eq!(crash_home.story("poison"), "dead: lost lost lost lost lost");
    let job = crash_home.home.show("poison");
    assert_eq!((&job["reason"], &job["failures"]), (&"crash_limit".into(), &0.into()));
    assert_eq!(crash_home.story("b"), "completed: success");
}

#[test]
fn fault_41_jobs_that_kill_their_worker_do_not_keep_others_from_running() {
    let crash_home = CrashHome::new();
    crash_home.set("crash_limit", "2");
    let poison = ["p1", "p2", "p3", "p4"];
    for id in poison {
        crash_home.job(id, "kill -9 $PPID; hang");
    }
    crash_home.job("healthy", "true");
    crash_home.pool();
    crash_home.finish();
    for id in poison {
        assert_eq!(crash_home.story_of_started(id), "dead: lost lost", "{id}");
    }
    assert_eq!(crash_home.story_of_started("healthy"), "completed: success");
    let lines = crash_home.ledger();
    let point = |id: &str, attempt| {
        let is_it = |line: &Line| line.kind == LineKind::Start && line.job == id && line.attempt == attempt;
        lines.iter().position(is_it).expect("it started")
    };
    let healthy = lines.iter().position(|line| line.job == "healthy").expect("it started");
    let second =
        |id: &str| (2..9).find(|attempt| crash_home.has(LineKind::Start, id, *attempt)).expect("a second");
    assert!(poison.iter().all(|id| healthy < point(id, second(id))), "a lost job runs after the others");
}

#[test]
fn fault_41_jobs_that_run_next_to_a_job_that_kills_its_worker_do_not_become_dead() {
    let crash_home = CrashHome::new();
    crash_home.set("crash_limit", "2");
    let neighbours_run =
        "until grep -q 'START a 1' ledger && grep -q 'START b 1' ledger; do sleep 0.02; done";
    crash_home.job("poison", &format!("{neighbours_run}; kill -9 $PPID; hang"));
    crash_home.job("a", "until_there go");
    crash_home.job("b", "until_there go");
    crash_home.pool_of(&["--concurrency", "3"]);
    wait("the poison job is dead", || crash_home.state("poison") == StateName::Dead);
    crash_home.put("go");
    crash_home.finish();
    assert_eq!(crash_home.story_of_started("poison"), "dead: lost lost");
    for id in ["a", "b"] {
        assert_eq!(crash_home.story_of_started(id), "completed: lost success", "{id}");
    }
}

#[test]
fn a_supervisor_sleeps_until_the_next_restart_is_due() {
    let crash_home = CrashHome::with_short_leases();
    crash_home.job("first", "true");
    let pool = crash_home.pool();
    // A pool that was never up gives up sooner.
    wait("the pool is up", || crash_home.state("first") == StateName::Completed);
    // After the fifth crash in a row it waits for 1.6 s.
    for _ in 0..5 {
        wait("a worker is up", || !crash_home.workers_of(pool).is_empty());
        kill_all(&crash_home.workers_of(pool), Signal::KILL);
        wait("it is gone", || crash_home.workers_of(pool).is_empty());
    }
    let before = cpu_time(pool.supervisor);
    wait("the next worker is up", || !crash_home.workers_of(pool).is_empty());
    let used = cpu_time(pool.supervisor).saturating_sub(before);
    assert!(used < Duration::from_millis(300), "it was busy for {used:?}");
    crash_home.finish();
}

/// The processor time of a process with one thread, as counted by the scheduler.
fn cpu_time(pid: Pid) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", pid.as_raw_pid())).expect("it is alive");
    let used = text.split(' ').next().and_then(|used| used.parse().ok());
    Duration::from_nanos(used.expect("a number"))
}

#[test]
#[cfg(debug_assertions)] // Released builds have no fail-points.
fn workers_that_crash_on_start_are_given_up() {
    let crash_home = CrashHome::new();
    for point in ["register.before_commit", "register.after_commit"] {
        let call = |args: &[&str]| crash_home.call(args).env("QUEUECTL_FAILPOINT", point).run();
        call(&["-q", "worker", "run"]).fails(1).says("the workers could not be started");
        call(&["worker", "start"]).fails(1).says("the workers could not be started");
        call(&["worker", "start", "--count", "2"]).fails(1).says("see worker.log");
    }
    crash_home.wait_until_no_process_is_left();
    crash_home.check();
}

#[test]
#[cfg(debug_assertions)] // Released builds have no fail-points.
fn a_pool_that_is_given_up_reports_it_before_its_other_workers_end() {
    let crash_home = CrashHome::new();
    crash_home.job("a", "until_there go");
    let armed = format!("register.after_commit=+{}", crash_home.home.folder().join("first").display());
    let call = crash_home.call(&["worker", "start", "--count", "2"]).env("QUEUECTL_FAILPOINT", armed);
    call.run().fails(1).says("the workers could not be started");
    assert_eq!(crash_home.story("a"), "processing: running");
    crash_home.put("go");
    crash_home.wait_until_no_process_is_left();
    crash_home.check();
    assert_eq!(crash_home.story("a"), "completed: success");
}

#[test]
fn workers_that_cannot_create_their_files_are_given_up() {
    let crash_home = CrashHome::new();
    crash_home.home.file("home/workers", "");
    crash_home.run(&["-q", "worker", "run"]).fails(1).says("the workers could not be started");
    crash_home.run(&["worker", "start"]).fails(1).says("the workers could not be started");
    crash_home.wait_until_no_process_is_left();
}
