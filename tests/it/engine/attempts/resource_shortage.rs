//! A worker that runs out of descriptors: jobs that it could not start are not blamed.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::engine::harness::{Home, Pool, history, wait_until};

/// Low, but above the descriptor by which a command inherits its lock.
const LIMIT: &str = "-n 64";
/// The same as a soft limit, which a worker may raise.
const SOFT_LIMIT: &str = "-Sn 64";
const SLOTS: &str = "24";
const JOBS: usize = 24;

#[test]
fn a_job_that_cannot_be_started_without_descriptors_is_released() {
    let home = Home::new();
    let ids: Vec<String> = (0..JOBS).map(|at| format!("j{at}")).collect();
    for id in &ids {
        home.enqueue(id, "until [ -e go ]; do sleep 0.05; done");
    }
    let call = home.call(["worker", "run", "--concurrency", SLOTS]).with_limit(LIMIT);
    let _pool = Pool::up(&home, call.into_command());
    wait_until("the descriptors are used up", || home.journal().contains("Too many open files"));
    let is_reported = || home.run(["status"]).ok().stdout.contains("is blocked (");
    wait_until("status reports it", is_reported);
    home.file("go", "");
    for id in &ids {
        let job = home.wait_for(id, "completed");
        let outcomes: Vec<&str> = history(&job).iter().filter_map(|row| row["outcome"].as_str()).collect();
        let is_fair = |outcome: &&str| ["released", "success"].contains(outcome);
        assert!(outcomes.iter().all(is_fair), "{id}: {outcomes:?}\n{}", home.journal());
    }
    wait_until("it is over", || !is_reported());
}

#[test]
fn a_worker_raises_its_own_limit_of_open_files_and_not_that_of_its_commands() {
    let home = Home::new();
    let ids: Vec<String> = (0..JOBS).map(|at| format!("j{at}")).collect();
    for id in &ids {
        home.enqueue(id, "ulimit -Sn; ulimit -Hn; until [ -e go ]; do sleep 0.05; done");
    }
    home.enqueue_with("own", "ulimit -Sn; ulimit -Hn", "--max-retries 0 --limits open_files=50");
    let slots = (JOBS + 1).to_string();
    let call = home.call(["worker", "run", "--concurrency", &slots]).with_limit(SOFT_LIMIT);
    let _pool = Pool::up(&home, call.into_command());
    wait_until("all of them run at once", || home.journal().matches("start j").count() == JOBS);
    home.file("go", "");
    for id in &ids {
        home.wait_for(id, "completed");
        let printed = home.printed_text(id);
        let limits: Vec<&str> = printed.lines().collect();
        assert_eq!((limits[0], limits[1] == "64"), ("64", false), "{id}");
    }
    home.wait_for("own", "completed");
    assert_eq!(home.printed_text("own"), "50\n50\n");
    assert!(!home.journal().contains("Too many open files"), "{}", home.journal());
}

#[test]
fn a_slot_that_could_not_be_started_is_started_when_descriptors_are_available_again() {
    let home = Home::new();
    home.set("concurrency", "1");
    let _pool = Pool::run(&home, "");
    // A worker is listed before its slots have started.
    home.enqueue("first", "true");
    home.wait_for("first", "completed");
    let pid = Pid::from_raw(home.workers()[0].pid.cast_signed()).expect("a pid");
    // No descriptors beyond the standard streams.
    let none = Rlimit { current: Some(3), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(Some(pid), Resource::Nofile, none).expect("the limit is lowered");
    home.set("concurrency", "2");
    wait_until("the worker knows", || home.workers()[0].concurrency == 2);
    prlimit(Some(pid), Resource::Nofile, before).expect("the limit is raised");
    home.enqueue("one", "touch one; until [ -e two ]; do sleep 0.02; done");
    home.enqueue("two", "touch two; until [ -e one ]; do sleep 0.02; done");
    home.wait_for("one", "completed");
    home.wait_for("two", "completed");
    assert!(home.journal().contains("failed to start a slot"), "{}", home.journal());
}
