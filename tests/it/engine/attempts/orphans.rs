//! Orphans of commands, and commands that do not end (FAULTS 17 and 18).

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use sys::cgroup::can_contain;

use crate::cli::harness::PROGRAM;
use crate::engine::harness::{Home, Pool, STEP_TIMEOUT, history, is_alive, send, wait_until};

/// A command that starts a background process, which writes its pid to `left`, and ends after that.
fn leaving(background: &str) -> String {
    format!("{background} & until [ -s left ]; do sleep 0.01; done")
}

/// Runs a command that leaves an orphan, and another command after it, in one slot.
#[track_caller]
fn assert_killed_at_the_end(background: &str) {
    let home = Home::new();
    home.enqueue("leaves", &leaving(background));
    home.enqueue("next", "true");
    let _pool = Pool::run(&home, "--concurrency 1");
    let job = home.wait_for("leaves", "completed");
    assert!(!is_alive(home.wait_for_pid("left")), "{background}");
    let took = Duration::from_millis(history(&job)[0]["duration_ms"].as_u64().expect("a number"));
    assert!(took < STEP_TIMEOUT / 3, "{background}: {took:?}");
    home.wait_for("next", "completed");
}

#[test]
fn fault_17_standard_input_is_empty() {
    let home = Home::new();
    let job = home.ran("cat; readlink /proc/self/fd/0");
    assert_eq!(job["state"], "completed");
    assert_eq!(home.printed_text("it"), "/dev/null\n");
}

#[test]
fn fault_17_a_background_process_is_killed() {
    assert_killed_at_the_end("sh -c 'echo $$ > left; exec sleep 600'");
}

#[test]
fn fault_17_a_background_process_that_ignores_signals_is_killed() {
    assert_killed_at_the_end("sh -c 'trap \"\" TERM HUP INT; echo $$ > left; exec sleep 600'");
}

#[test]
fn fault_17_a_daemon_is_killed() {
    assert_killed_at_the_end("setsid sh -c 'echo $$ > left; exec sleep 600'");
}

#[test]
fn fault_17_a_daemon_with_a_cleared_environment_is_killed() {
    assert_killed_at_the_end("env -i setsid sh -c 'echo $$ > left; exec sleep 600'");
}

#[test]
fn fault_17_a_daemon_without_environment_session_and_lock_is_killed() {
    assert_killed_at_the_end(
        "env -i setsid bash -c 'exec 0<&- 1>&- 2>&- 60>&-; echo $$ > left; exec sleep 600'",
    );
}

#[test]
fn fault_17_a_stopped_daemon_is_killed() {
    assert_killed_at_the_end("setsid sh -c 'echo $$ > left; kill -STOP $$'");
}

#[test]
fn fault_17_the_orphans_of_a_failing_command_are_killed() {
    let home = Home::new();
    let job = home.ran(&format!("{}; exit 3", leaving("setsid sh -c 'echo $$ > left; exec sleep 600'")));
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("dead"), &json!(3)));
    assert!(!is_alive(home.wait_for_pid("left")));
}

/// When the orphans of an attempt are killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KillTime {
    WithItsAttempt,
    /// When all attempts that ran concurrently have ended, too.
    WithTheLast,
}

/// The orphans of one attempt are killed when it ends, and the processes of another are not.
#[track_caller]
fn assert_distinguished(escape: &str) {
    assert_killed(KillTime::WithItsAttempt, escape);
}

#[track_caller]
fn assert_killed(when: KillTime, escape: &str) {
    let home = Home::new();
    let daemon = |file: &str| format!("{escape} sh -c 'echo $$ > {file}; exec sleep 600'");
    home.enqueue("stays", &format!("{} & until [ -e go ]; do sleep 0.02; done", daemon("kept")));
    let _pool = Pool::run(&home, "--concurrency 2");
    let kept = home.wait_for_pid("kept");
    home.enqueue("leaves", &leaving(&daemon("left")));
    home.wait_for("leaves", "completed");
    let left = home.wait_for_pid("left");
    assert_eq!(
        is_alive(left),
        when == KillTime::WithTheLast,
        "its own orphan is killed, if it can be recognised"
    );
    assert!(is_alive(kept), "that of the other attempt is not killed");
    home.file("go", "");
    home.wait_for("stays", "completed");
    assert!(!is_alive(kept) && !is_alive(left));
}

#[test]
fn fault_17_daemons_of_two_attempts_are_distinguished() {
    assert_distinguished("setsid");
}

#[test]
fn fault_17_daemons_without_an_environment_are_distinguished() {
    assert_distinguished("env -i setsid");
}

#[test]
fn fault_17_daemons_without_environment_session_and_lock_are_distinguished() {
    let escape = "env -i setsid bash -c 'exec 0<&- 1>&- 2>&- 60>&-; exec \"$@\"' it";
    let when = if can_contain().is_ok() { KillTime::WithItsAttempt } else { KillTime::WithTheLast };
    assert_killed(when, escape);
}

/// More jobs than the outer worker has slots.
const INNER_JOBS: [&str; 3] = ["in1", "in2", "in3"];

/// A home with long jobs, and a command that starts a worker for them in the background.
fn inner_queue() -> (Home, String) {
    let inner = Home::new();
    for id in INNER_JOBS {
        inner.enqueue(id, &format!("echo $$ > {id}; exec sleep 600"));
    }
    let start = format!("{PROGRAM} --home {} worker start --concurrency 3", inner.path().display());
    (inner, start)
}

/// The pids of the commands that the inner worker runs.
fn inner_commands(inner: &Home) -> [u32; 3] {
    INNER_JOBS.map(|id| inner.wait_for_pid(id))
}

#[test]
fn fault_17_a_worker_that_a_job_started_is_killed_with_all_its_commands() {
    let (home, (inner, start)) = (Home::new(), inner_queue());
    home.enqueue("nests", &format!("{start}; until [ -e go ]; do sleep 0.02; done"));
    let _inner_pool = Pool::of(&inner);
    let _pool = Pool::run(&home, "--concurrency 1");
    let commands = inner_commands(&inner);
    home.file("go", "");
    home.wait_for("nests", "completed");
    assert_eq!(commands.map(is_alive), [false; 3]);
}

#[test]
fn fault_17_orphans_of_a_worker_inside_a_job_are_not_assigned_to_another_slot() {
    let (home, (inner, start)) = (Home::new(), inner_queue());
    home.enqueue("nests", &format!("{start}; until [ -e go ]; do sleep 0.02; done"));
    let _inner_pool = Pool::of(&inner);
    let _pool = Pool::run(&home, "--concurrency 2");
    let commands = inner_commands(&inner);
    for worker in inner.workers() {
        send(worker.supervisor_pid.expect("a supervisor"), Signal::KILL);
        send(worker.pid, Signal::KILL);
    }
    for id in ["b1", "b2", "b3", "b4"] {
        home.enqueue(id, "true");
        home.wait_for(id, "completed");
    }
    assert_eq!(commands.map(is_alive), [true; 3], "their job still runs");
    home.file("go", "");
    home.wait_for("nests", "completed");
    assert_eq!(commands.map(is_alive), [false; 3]);
}

#[test]
fn fault_18_a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    let deaf = "trap '' TERM; echo $$ > deaf; while :; do sleep 0.05; done";
    let home = Home::after_timeout(&[("kill_grace", "300ms")], deaf, "deaf");
    let job = home.show("it");
    let attempt = &history(&job)[0];
    assert_eq!(attempt["outcome"], "timeout");
    assert!(attempt["duration_ms"].as_u64() >= Some(700), "timeout and grace: {attempt}");
    assert!(!is_alive(home.wait_for_pid("deaf")));
}

/// Whether a process is stopped.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn fault_18_a_command_that_stopped_itself_times_out() {
    // It ends on SIGTERM, so the test does not wait for the grace period.
    let still = "echo $$ > still; kill -STOP $$; sleep 600";
    let home = Home::after_timeout(&[("kill_grace", "1h")], still, "still");
    assert_eq!(history(&home.show("it"))[0]["outcome"], "timeout");
    assert!(!is_alive(home.wait_for_pid("still")));
}

#[test]
fn fault_18_a_command_that_stopped_itself_is_cancelled() {
    let home = Home::new();
    home.enqueue("still", "echo $$ > still; kill -STOP $$; sleep 600");
    let _pool = Pool::run(&home, "");
    let pid = home.wait_for_pid("still");
    wait_until("it stops", || is_stopped(pid));
    home.run(["cancel", "still"]).ok();
    let job = home.wait_for("still", "cancelled");
    assert_eq!((&job["reason"], &job["exit_code"]), (&json!("user"), &Value::Null));
    assert_eq!(history(&job)[0]["outcome"], "cancelled");
    assert!(!is_alive(pid));
}

#[test]
fn fault_18_a_command_that_stopped_itself_does_not_delay_a_stop() {
    let home = Home::new();
    home.set("kill_grace", "300ms");
    home.enqueue("still", "trap '' TERM; echo $$ > still; kill -STOP $$; while :; do sleep 0.05; done");
    let pool = Pool::run(&home, "");
    let pid = home.wait_for_pid("still");
    wait_until("it stops", || is_stopped(pid));
    home.run(["worker", "stop", "--now"]).ok();
    pool.ends_well();
    let job = home.show("still");
    assert_eq!((&job["state"], &history(&job)[0]["outcome"]), (&json!("pending"), &json!("released")));
    assert!(!is_alive(pid));
}

#[test]
fn fault_18_a_child_may_finish_its_cleanup_after_its_shell_has_ended() {
    let home = Home::new();
    let tidy =
        "trap 'sleep 0.3; echo tidy > tidied; exit' TERM; echo $$ > child; while :; do sleep 0.02; done";
    home.file("tidy.sh", tidy);
    home.enqueue("it", "echo $$ > shell; sh tidy.sh & wait");
    let _pool = Pool::run(&home, "");
    let (shell, child) = (home.wait_for_pid("shell"), home.wait_for_pid("child"));
    home.run(["cancel", "it"]).ok();
    home.wait_for("it", "cancelled");
    assert_eq!(home.read("tidied"), "tidy\n");
    assert!(!is_alive(shell) && !is_alive(child));
}
