//! Dead jobs by their cause.

use domain::job::outcome::Outcome;
use domain::values::signal::Signal;
use serde_json::{Value, json};

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

/// A dead job with this exit code.
fn die(home: &Home, id: &str, queue: &str, exit_code: i32, stderr: &str) {
    let outcome = Outcome::Failure { exit_code };
    die_of(home, id, queue, outcome, &format!("exit code {exit_code}: {stderr}"));
}

fn die_of(home: &Home, id: &str, queue: &str, outcome: Outcome, error: &str) {
    home.run(["enqueue", "-q", "--id", id, "-Q", queue, "--max-retries", "0", "--", "false"]).ok();
    let worker = TestWorker::for_job(home, &format!("w-{id}"), id);
    worker.settle(worker.claim_job(id), outcome, Some(error));
}

/// Three jobs without a user, two segmentation faults, and one job that was killed.
fn various() -> Home {
    let home = Home::new();
    die(&home, "u1", "default", 1, "no user 17");
    die(&home, "u2", "mail", 1, "no user 4");
    die(&home, "u3", "default", 1, "no user 123456789");
    die(&home, "f1", "default", 139, "fault at 0x7ffe12ab in /usr/lib/a.so");
    die(&home, "f2", "default", 139, "fault at 0x55d0c3f1 in /opt/b.so");
    die_of(&home, "k1", "default", Outcome::Signal { signal: Signal::KILL }, "killed by SIGKILL");
    home
}

fn groups(home: &Home, args: &[&str]) -> Vec<Value> {
    let printed = home.run(["dlq", "list", "--group", "--json"].iter().chain(args)).ok().json();
    printed.as_array().expect("an array").clone()
}

fn cause_of(home: &Home, example: &str) -> String {
    let groups = groups(home, &[]);
    let group = groups.iter().find(|group| group["example"] == example).expect("a group");
    group["cause"].as_str().expect("an id").to_owned()
}

#[test]
fn jobs_are_grouped_by_exit_code_or_signal_and_masked_message() {
    let home = various();
    let groups = groups(&home, &[]);
    let shape: Vec<_> = groups.iter().map(|group| (&group["count"], &group["message"])).collect();
    assert_eq!(
        shape,
        [
            (&json!(3), &json!("exit code 1: no user …")),
            (&json!(2), &json!("exit code 139: fault at … in …")),
            (&json!(1), &json!("killed by SIGKILL")),
        ],
        "the largest first"
    );
    let first = &groups[0];
    assert_eq!((&first["reason"], &first["exit_code"]), (&json!("retries_exhausted"), &json!(1)));
    assert_eq!((&first["queues"], &first["signal"]), (&json!(["default", "mail"]), &Value::Null));
    assert_eq!((&first["example"], &first["number"]), (&json!("u3"), &json!(3)));
    assert_eq!(first["cause"], "4d67763a", "an id is the same everywhere");
    assert_eq!((&groups[2]["signal"], &groups[2]["exit_code"]), (&json!("SIGKILL"), &Value::Null));
}

#[test]
fn the_same_message_with_other_exit_codes_is_another_cause() {
    let home = Home::new();
    for (id, code) in [("a", 1), ("b", 2), ("c", 137)] {
        die(&home, id, "default", code, "no luck");
    }
    assert_eq!(groups(&home, &[]).len(), 3);
}

#[test]
fn a_selection_restricts_the_groups() {
    let home = various();
    let mail = groups(&home, &["--queue", "mail"]);
    assert_eq!((mail.len(), &mail[0]["count"], &mail[0]["example"]), (1, &json!(1), &json!("u2")));
    home.run(["dlq", "list", "--group", "--older-than", "1h"]).ok().prints("").says("no dead jobs matched");
    home.run(["dlq", "list", "--group", "--queue", "mial"]).ok().prints("").says("did you mean `mail`?");
}

#[test]
fn a_terminal_shows_ids_numbers_and_the_next_command() {
    let home = various();
    let call = home.call(["--color", "never", "dlq", "list", "--group"]);
    let screen = on_terminal(call.into_command(), 80, "").screen;
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let heading: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(heading, ["CAUSE", "JOBS", "QUEUES", "LAST", "EXAMPLE", "MESSAGE"]);
    assert!(
        lines[1].starts_with("4d67763a     3  default,mail  ")
            && lines[1].ends_with("        3  exit code 1: no user …"),
        "{screen}"
    );
    assert_eq!(lines[4], "`queuectl dlq retry --cause CAUSE` retries one group");
}

#[test]
fn the_jobs_of_one_cause_are_listed_page_by_page() {
    let home = various();
    let listed = |args: &[&str]| {
        let printed = home.run(["dlq", "list", "--json"].iter().chain(args)).ok().json();
        ids(&printed).join(" ")
    };
    let cause = cause_of(&home, "u3");
    assert_eq!(listed(&["--cause", &cause]), "u3 u2 u1");
    assert_eq!(listed(&["--cause", &cause[..5]]), "u3 u2 u1", "the beginning of an id is enough");
    assert_eq!(listed(&["--cause", "u2"]), "u3 u2 u1", "a job stands for its cause");
    assert_eq!(listed(&["--cause", &cause, "--queue", "default"]), "u3 u1");
    assert_eq!(listed(&["--cause", &cause, "--limit", "2", "--after", "u3"]), "u2 u1");
    home.run(["dlq", "list", "--cause", &cause, "--limit", "2", "--format", "ids"])
        .ok()
        .prints("u3\nu2\n")
        .says("hint: there are more; continue with --after u2");
}

#[test]
fn one_cause_is_retried_after_a_confirmation() {
    let home = various();
    let cause = cause_of(&home, "f2");
    home.run(["dlq", "retry", "--cause", &cause]).fails(2).says("this would retry 2 jobs").says("--yes");
    home.run(["dlq", "retry", "--cause", &cause, "--dry-run"]).ok().shows("Would retry 2 jobs: 2 dead");
    assert_eq!(home.state_of("f1"), "dead");
    home.run(["dlq", "retry", "--cause", &cause, "--yes"]).ok().prints("2\n");
    let state = |id: &str| home.state_of(id);
    assert_eq!([state("f1"), state("f2"), state("u1"), state("k1")], ["pending", "pending", "dead", "dead"]);
    home.run(["dlq", "retry", "--cause", &cause, "--yes"]).fails(3);
}

#[test]
fn one_cause_is_purged_after_a_confirmation() {
    let home = various();
    let cause = cause_of(&home, "u3");
    home.run(["dlq", "purge", "--cause", &cause]).fails(2).says("this would purge 3 jobs");
    home.run(["dlq", "purge", "--cause", &cause, "--queue", "mail"]).ok().prints("1\n");
    home.run(["dlq", "purge", "--cause", &cause, "--yes", "--json"]).ok().prints("{\"count\":2}\n");
    assert_eq!(home.count(), 3);
}

#[test]
fn an_unknown_cause_is_refused() {
    let home = various();
    for args in [&["list"][..], &["retry", "--yes"], &["purge", "--yes"], &["retry", "--dry-run"]] {
        home.run(["dlq"].iter().chain(args).chain(&["--cause", "nope"]))
            .fails(3)
            .prints("")
            .says("error: there is no cause `nope`\nhint: `queuectl dlq list --group` shows the causes\n");
    }
    home.run(["dlq", "retry", "--cause", ""]).fails(3);
    home.run(["dlq", "retry", "u1", "--cause", "4d67763a"]).fails(2).says("cannot be combined");
    home.run(["dlq", "list", "--group", "--cause", "4d67763a"]).fails(2);
    assert_eq!(home.count(), 6);
}
