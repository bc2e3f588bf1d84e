//! Resource limits of jobs, and what happens to jobs that exceed them (FAULTS 22).
//!
//! The workers here have no delegated cgroup: they share that of the test.

use std::process::Command;

use serde_json::{Value, json};

use crate::cli::harness::allow;
use crate::engine::harness::{Home, Pool, history};

/// A fork bomb, which ends by itself after a bounded number of generations.
const BOMB: &str = "b() { [ $1 -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; sleep 60; }; b 9";
/// Allocates 300 MiB and keeps them, in its second process.
const HOG: &str = "(head -c 314572800 /dev/zero; sleep 60) | tail";

/// A job with limits, without retries.
#[track_caller]
fn limited(home: &Home, id: &str, limits: &str, command: &str) {
    home.enqueue_with(id, command, &format!("--max-retries 0 --limits {limits}"));
}

/// Runs the command under limits that it exceeds, concurrently with another job, and checks that no other job is
/// affected.
#[track_caller]
fn assert_killed_alone(home: &Home, limits: &str, command: &str, error: &str) {
    limited(home, "greedy", limits, command);
    home.enqueue("other", "until [ -e go ]; do sleep 0.02; done");
    let _pool = Pool::run(home, "--concurrency 2");
    let job = home.wait_for("greedy", "dead");
    assert_eq!((&job["error"], &job["signal"]), (&json!(error), &json!("SIGKILL")));
    assert_eq!((&job["reason"], &job["failures"]), (&json!("retries_exhausted"), &json!(1)));
    assert_eq!(history(&job)[0]["outcome"], "signal");
    home.enqueue("after", "true");
    home.wait_for("after", "completed");
    home.file("go", "");
    let other = home.wait_for("other", "completed");
    assert_eq!(history(&other)[0]["worker_id"], history(&job)[0]["worker_id"], "the worker was not replaced");
    assert_eq!(home.workers().len(), 1);
    assert_eq!(left_of(home, "greedy"), 0, "no process of it is left");
}

/// How many processes have the id of this job in their environment.
fn left_of(home: &Home, id: &str) -> usize {
    let (name, place) = (format!("QUEUECTL_JOB_ID={id}"), format!("QUEUECTL_HOME={}", home.path().display()));
    let names_it = |environment: &[u8]| {
        let has = |wanted: &str| environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes());
        has(&name) && has(&place)
    };
    let all = sys::process::all().expect("/proc");
    all.into_iter().filter(|pid| names_it(&sys::process::environment(*pid))).count()
}

#[test]
fn fault_22_a_fork_bomb_under_a_limit_dies_alone() {
    let error = "killed: had more processes and threads than its limit of 40";
    assert_killed_alone(&Home::new(), "pids=40", BOMB, error);
}

#[test]
fn fault_22_a_fork_bomb_of_daemons_dies_alone() {
    let home = Home::new();
    let script = "#!/bin/sh
        [ $1 -gt 0 ] && { (setsid ./bomb $(($1-1)) &); (setsid ./bomb $(($1-1)) &); }
        exec sleep 60\n";
    allow(&home.file("bomb", script), 0o700);
    let error = "killed: had more processes and threads than its limit of 40";
    assert_killed_alone(&home, "pids=40", "./bomb 9", error);
}

#[test]
fn fault_22_a_memory_hog_under_a_limit_dies_alone() {
    let error = "killed: used more than its memory limit of 64M";
    assert_killed_alone(&Home::new(), "memory=64M", HOG, error);
}

#[test]
fn fault_22_a_memory_hog_that_became_a_daemon_dies_alone() {
    let home = Home::new();
    allow(&home.file("hog", format!("#!/bin/sh\n{HOG}\n")), 0o700);
    let error = "killed: used more than its memory limit of 64M";
    assert_killed_alone(&home, "memory=64M", "(setsid ./hog &); sleep 60", error);
}

#[test]
fn fault_22_the_processes_of_a_job_share_its_memory_limit() {
    let home = Home::new();
    let part = "(head -c 31457280 /dev/zero; sleep 60) | tail &";
    let error = "killed: used more than its memory limit of 64M: three";
    assert_killed_alone(&home, "memory=64M", &format!("echo three >&2; {part} {part} {part} wait"), error);
}

#[test]
fn a_job_within_its_limits_is_not_killed() {
    let home = Home::new();
    // Long enough for a few checks.
    limited(&home, "modest", "memory=256M,pids=20", "sleep 0.2 & sleep 0.2 & wait; echo done");
    Pool::drain(&home, "");
    assert_eq!(home.show("modest")["state"], "completed");
    assert_eq!(home.printed_text("modest"), "done\n");
}

#[test]
fn a_job_that_exceeds_a_limit_is_retried_like_any_failure() {
    let home = Home::new();
    home.set("retry_delay", "1ms");
    home.enqueue_with("greedy", BOMB, "--max-retries 1 --limits pids=20");
    Pool::drain(&home, "");
    let job = home.show("greedy");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("dead"), &json!(2)));
    let outcomes: Vec<&Value> = history(&job).iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["signal", "signal"]);
}

#[test]
fn open_files_and_niceness_are_limited_from_the_start() {
    let home = Home::new();
    limited(&home, "shell", "open_files=64,nice=7", "ulimit -Sn; ulimit -Hn; nice");
    limited(&home, "direct", "nice=3", "nice");
    home.enqueue("plain", "nice");
    Pool::drain(&home, "");
    assert_eq!(home.printed_text("shell"), "64\n64\n7\n");
    assert_eq!(home.printed_text("direct"), "3\n");
    // That of the tests, which may run with less priority.
    let own = Command::new("nice").output().expect("nice runs").stdout;
    assert_eq!(home.printed_text("plain").as_bytes(), own);
}

#[test]
fn a_limit_that_cannot_be_enforced_is_a_spawn_error() {
    for (limits, says) in [
        ("cpu=0.5", "could not be started: limits.cpu needs a delegated cgroup ("),
        (
            "open_files=1073741824",
            "could not be started: a limit of 1073741824 open files is not allowed here",
        ),
    ] {
        let home = Home::new();
        limited(&home, "it", limits, "touch ran");
        Pool::drain(&home, "");
        let job = home.show("it");
        let error = job["error"].as_str().expect("an error");
        assert!(error.starts_with(says), "{error}");
        assert_eq!((&job["exit_code"], &history(&job)[0]["outcome"]), (&Value::Null, &json!("spawn_error")));
        assert!(!home.folder().join("ran").exists());
    }
}

#[test]
fn limits_of_the_job_override_those_of_the_queue_and_the_settings() {
    let home = Home::new();
    home.set("limits", "nice=5,open_files=200");
    home.run(["queue", "set", "q", "--limits", "open_files=150,memory=1G"]).ok();
    let ask = "nice; ulimit -n";
    for (id, flags) in [("setting", ""), ("queue", "--queue q"), ("job", "--queue q --limits nice=9")] {
        home.enqueue_with(id, ask, flags);
    }
    Pool::drain(&home, "");
    let printed = ["setting", "queue", "job"].map(|id| home.printed_text(id));
    assert_eq!(printed, ["5\n200\n", "5\n150\n", "9\n150\n"]);
}

#[test]
fn an_exit_code_that_is_not_retried_ends_a_job_at_once() {
    let home = Home::new();
    home.set("retry_delay", "1ms");
    home.run(["queue", "set", "q", "--no-retry-on", "3"]).ok();
    home.enqueue_with("job", "exit 2", "--no-retry-on 2 --max-retries 1");
    home.enqueue_with("only", "exit 2", "--retry-on 75 --max-retries 1");
    home.enqueue_with("queue", "exit 3", "--queue q --max-retries 1");
    home.enqueue_with("own", "exit 3", "--queue q --retry-on 3 --max-retries 1");
    home.enqueue_with("killed", "kill -9 $$", "--retry-on 75 --max-retries 1");
    Pool::drain(&home, "");
    for (id, failures, reason) in [
        ("job", 1, "not_retried"),
        ("only", 1, "not_retried"),
        ("queue", 1, "not_retried"),
        ("own", 2, "retries_exhausted"),
        ("killed", 2, "retries_exhausted"),
    ] {
        let job = home.show(id);
        let found = (&job["state"], &job["failures"], &job["reason"]);
        assert_eq!(found, (&json!("dead"), &json!(failures), &json!(reason)), "{job:#}");
    }
    assert!(home.journal().contains("dead: not retried"), "{}", home.journal());
}
