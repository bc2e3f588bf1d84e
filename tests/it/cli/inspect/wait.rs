use std::os::unix::process::ExitStatusExt;

use domain::job::outcome::Outcome;
use rustix::process::Signal;
use serde_json::json;

use crate::cli::harness::background::Background;
use crate::cli::harness::pseudo_terminal::{Terminal, on_terminal};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

const FAILURE: Outcome = Outcome::Failure { exit_code: 2 };
const NO_WORKER: &str = "hint: no worker is running; start one with `queuectl worker start`";

fn wait_on_terminal(home: &Home, args: &[&str]) -> Terminal {
    let args = ["wait", "--color", "never"].iter().chain(args);
    Terminal::start(home.call(args).interruptible().into_command(), 120, 30)
}

#[test]
fn finished_jobs_are_reported_at_once() {
    let home = Home::new();
    home.completed_job("a");
    home.completed_job("b");
    home.run(["wait", "b", "a", "b"]).ok().prints("b\na\n").says_nothing();
    home.run(["wait", "a", "-q"]).ok().prints("").says_nothing();
    let seen = on_terminal(home.call(["wait", "a", "b"]).into_command(), 100, "");
    assert_eq!((seen.screen.as_str(), seen.code), ("Job a completed\nJob b completed\n", Some(0)));
}

#[test]
fn jobs_are_printed_as_they_complete() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    let waiting = Background::start(home.call(["wait", "b", "a"]));
    for id in ["a", "b"] {
        let lease = worker.claim_job(id);
        worker.settle(lease, Outcome::Success, None);
        assert_eq!(waiting.prints(), id);
    }
    let (status, rest) = waiting.end();
    assert_eq!((status.code(), rest), (Some(0), vec![]));
}

#[test]
fn waiting_for_a_failed_job_includes_its_retry() {
    let home = Home::with_jobs(&["a"]);
    home.run(["config", "set", "retry-delay", "0"]).ok();
    let worker = TestWorker::new(&home, "w1");
    let mut terminal = wait_on_terminal(&home, &["a"]);
    terminal.wait_until(|screen| screen.contains("0 of 1, 1 pending"));
    let lease = worker.claim_job("a");
    terminal.wait_until(|screen| screen.contains("0 of 1, 1 processing (for "));
    worker.settle(lease, FAILURE, Some("exit code 2"));
    terminal.wait_until(|screen| screen.contains("0 of 1, 1 failed"));
    let lease = worker.claim_job("a");
    worker.settle(lease, Outcome::Success, None);
    let seen = terminal.end();
    assert_eq!(seen.code, Some(0), "{}", seen.screen);
    assert!(seen.screen.ends_with("\r\u{1b}[KJob a completed\n"), "the bar is gone: {:?}", seen.screen);
}

#[test]
fn dead_and_cancelled_jobs_are_errors_with_their_reason() {
    let home = Home::new();
    home.dead_job("dead", "exit code 1: no route");
    home.completed_job("done");
    home.run(["enqueue", "-q", "--id", "parent", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "child", "--depends-on", "parent", "--", "true"]).ok();
    home.run(["cancel", "parent"]).ok();
    let ran = home.run(["wait", "dead", "done", "parent", "child"]).fails(1).prints("done\n");
    assert_eq!(
        ran.stderr,
        "error: job `dead` is dead (retries exhausted: exit code 1: no route)\n\
         error: job `parent` is cancelled (user)\n\
         error: job `child` is cancelled because parent is cancelled (user)\n"
    );
    home.run(["wait", "dead", "-q"]).fails(1).prints("").says("error: job `dead` is dead");
}

#[test]
fn unknown_jobs_are_reported_at_once_and_the_others_waited_for() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    let waiting = Background::start(home.call(["wait", "nope", "a"]));
    assert_eq!(waiting.says(), "error: there is no job `nope`");
    assert_eq!(waiting.says(), "hint: `queuectl list` shows all jobs");
    let lease = worker.claim_job("a");
    worker.settle(lease, Outcome::Success, None);
    assert_eq!(waiting.prints(), "a");
    assert_eq!(waiting.end().0.code(), Some(3));
}

#[test]
fn a_job_that_is_removed_meanwhile_counts_as_not_found() {
    let home = Home::with_jobs(&["a"]);
    let waiting = Background::start(home.call(["wait", "a"]));
    assert_eq!(waiting.says(), NO_WORKER, "it has looked");
    home.run(["remove", "a"]).ok();
    assert_eq!(waiting.says(), "error: job `a` was removed while it was being waited for");
    let (status, rest) = waiting.end();
    assert_eq!((status.code(), rest), (Some(3), vec![]));
}

#[test]
fn a_timeout_lists_the_unfinished_jobs() {
    let home = Home::with_jobs(&["a", "b", "c"]);
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    let said = |args: &[&str]| home.run([&["wait"], args].concat()).fails(124).prints("").stderr;
    assert_eq!(
        said(&["a", "--timeout", "50ms"]),
        "error: job `a` is still processing after 50ms\nhint: `queuectl logs -f a` shows its output\n"
    );
    assert_eq!(
        said(&["b", "c", "a", "--timeout", "0"]),
        "error: 3 of 3 jobs are unfinished after 0s (b is pending, c is pending, a is processing)\n\
         hint: `queuectl explain b` shows what it waits for\n"
    );
    worker.settle(lease, Outcome::Success, None);
    home.run(["wait", "a", "b", "--timeout", "0"])
        .fails(124)
        .prints("a\n")
        .says("error: 1 of 2 jobs is unfinished after 0s (b is pending)");
    assert_eq!(home.state_of("b"), "pending", "the job is unaffected");
}

/// More jobs than one poll covers.
fn many_jobs(home: &Home) -> Vec<String> {
    let names: Vec<String> = (0..1_200).map(|number| format!("j{number}")).collect();
    let lines: Vec<String> =
        names.iter().map(|id| format!("{{\"id\":\"{id}\",\"command\":\"true\"}}\n")).collect();
    home.call(["enqueue", "-q", "-"]).with_stdin(lines.concat()).run().ok();
    names
}

#[test]
fn at_most_ten_unfinished_jobs_are_listed() {
    let home = Home::new();
    let names = many_jobs(&home);
    let wait = ["wait", "--timeout", "0", "-q"].into_iter().chain(names.iter().map(String::as_str));
    home.run(wait)
        .fails(124)
        .says("error: 1200 of 1200 jobs are unfinished after 0s (j0 is pending, ")
        .says("j9 is pending, and 1190 more)");
}

#[test]
fn thousands_of_jobs_are_polled_in_turn() {
    let home = Home::new();
    let names = many_jobs(&home);
    let worker = TestWorker::new(&home, "w1");
    let args = ["wait"].into_iter().chain(names.iter().map(String::as_str)).chain(["nope"]);
    let waiting = Background::start(home.call(args));
    assert_eq!(waiting.says(), "error: there is no job `nope`", "it has looked");
    for claim in worker.claim(names.len()) {
        worker.settle(claim.lease, Outcome::Success, None);
    }
    let (status, rest) = waiting.end();
    let completed = rest.iter().filter(|line| line.starts_with('j')).count();
    assert_eq!((status.code(), completed), (Some(3), names.len()));
}

#[test]
fn the_highest_code_is_returned() {
    let home = Home::new();
    home.dead_job("dead", "exit code 1");
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["wait", "dead", "nope"]).fails(3);
    home.run(["wait", "nope", "a", "dead", "--timeout", "0"]).fails(124);
}

#[test]
fn json_is_an_array_of_the_jobs_in_their_final_state() {
    let home = Home::new();
    home.dead_job("dead", "exit code 1");
    home.completed_job("done");
    let ran = home.run(["wait", "--json", "done", "dead"]).fails(1);
    assert_eq!((ran.lines().len(), ids(&ran.json())), (1, vec!["done", "dead"]));
    let states = [&ran.json()[0]["state"], &ran.json()[1]["reason"]].map(Clone::clone);
    assert_eq!(states, [json!("completed"), json!("retries_exhausted")]);
    let expected =
        json!({"error": "job `dead` is dead (retries exhausted: exit code 1)", "exit_code": 1, "hint": null});
    assert_eq!(ran.error_json(), expected);

    home.run(["wait", "--json", "nope"]).fails(3).prints("[]\n");
    home.run(["wait", "--json", "-q", "done"]).ok().prints("").says_nothing();

    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    let _worker = TestWorker::new(&home, "w1");
    let ran = home.run(["wait", "--json", "a", "done", "--timeout", "0"]).fails(124);
    assert_eq!((ids(&ran.json()), &ran.json()[0]["state"]), (vec!["a", "done"], &json!("pending")));
    assert_eq!(ran.error_json()["exit_code"], 124);
}

#[test]
fn the_missing_worker_hint_is_printed_once() {
    let home = Home::with_jobs(&["a"]);
    let waiting = Background::start(home.call(["wait", "a"]));
    assert_eq!(waiting.says(), NO_WORKER);
    home.run(["cancel", "a"]).ok();
    let (status, rest) = waiting.end();
    assert_eq!((status.code(), rest), (Some(1), vec!["error: job `a` is cancelled (user)".to_owned()]));
    let home = Home::with_jobs(&["a"]);
    assert!(!home.run(["wait", "a", "-q", "--timeout", "50ms"]).fails(124).stderr.contains(NO_WORKER));
}

#[test]
fn a_hint_is_printed_when_the_last_worker_exits() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    let waiting = Background::start(home.call(["wait", "a", "b"]));
    let lease = worker.claim_job("a");
    worker.settle(lease, Outcome::Success, None);
    assert_eq!(waiting.prints(), "a");
    drop(worker);
    assert_eq!(waiting.says(), NO_WORKER);
}

#[test]
fn a_terminal_shows_the_progress() {
    let home = Home::new();
    home.completed_job("done");
    for id in ["a", "b", "c"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    worker.claim_job("b");
    let mut terminal = wait_on_terminal(&home, &["done", "a", "b", "c"]);
    let bar = format!("Job done completed\n\r\u{1b}[Kwaiting {}{} 1 of 4, ", "━".repeat(7), "─".repeat(23));
    terminal.wait_until(|screen| screen.contains(&bar));
    terminal.wait_until(|screen| {
        screen.contains("2 processing (the longest for ") && screen.contains(", 1 pending")
    });
    worker.settle(lease, Outcome::Success, None);
    let bar = format!("Job a completed\n\r\u{1b}[Kwaiting {}{} 2 of 4, ", "━".repeat(15), "─".repeat(15));
    terminal.wait_until(|screen| screen.contains(&bar));
    terminal.wait_until(|screen| {
        screen.contains("1 processing (for ") && screen.contains("/s, ") && screen.contains(" left")
    });
}

#[test]
fn ctrl_c_ends_only_the_wait() {
    let home = Home::with_jobs(&["a"]);
    for signal in [Signal::INT, Signal::TERM] {
        let mut terminal = wait_on_terminal(&home, &["a"]);
        terminal.wait_until(|screen| screen.contains("0 of 1"));
        terminal.signal(signal);
        let seen = terminal.end();
        assert_eq!(seen.status.signal(), Some(signal.as_raw()), "a shell can tell: {}", seen.screen);
        assert!(seen.screen.ends_with("\r\u{1b}[K"), "the line is as it was: {:?}", seen.screen);
        assert_eq!(home.state_of("a"), "pending");
    }
}

#[test]
fn invalid_arguments_are_refused() {
    let home = Home::with_jobs(&["a"]);
    for args in [
        ["wait", "a/b"].as_slice(),
        &["wait", "../a"],
        &["wait", "a", "--timeout", "soon"],
        &["wait", "a", "--timeout", "-1"],
    ] {
        home.run(args).fails(2).prints("");
    }
}
