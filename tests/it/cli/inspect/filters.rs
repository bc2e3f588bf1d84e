//! The filters that name what a job is, or what happened to it.

use serde_json::Value;

use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

/// Jobs that ended in different ways, one that runs, and one of a schedule.
fn mixed() -> Home {
    let home = Home::new();
    for (id, command) in [("three", "exit 3"), ("four", "exit 4"), ("fine", "true")] {
        home.run(["enqueue", "-q", "--id", id, "--max-retries", "0", "--command", command]).ok();
    }
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "stopped", "--", "true"]).ok();
    home.run(["cancel", "stopped"]).ok();
    home.run(["schedule", "add", "nightly", "--every", "1h", "--queue", "night", "--", "true"]).ok();
    home.run(["schedule", "run", "nightly"]).ok();
    home
}

fn listed(home: &Home, args: &[&str]) -> Vec<String> {
    let jobs = home.run(["list", "--json"].iter().chain(args)).ok().json();
    ids(&jobs).into_iter().map(str::to_owned).collect()
}

#[test]
fn jobs_are_selected_by_what_happened_to_them() {
    let home = mixed();
    let causes = home.run(["dlq", "list", "--group", "--json"]).ok().json();
    let is_three = |group: &&Value| group["example"] == "three";
    let cause = causes.as_array().expect("groups").iter().find(is_three).expect("a cause");
    let cause = cause["cause"].as_str().expect("an id");
    for (args, expected) in [
        (&["--exit-code", "3"][..], &["three"][..]),
        (&["--exit-code", "5"], &[]),
        (&["--reason", "retries_exhausted"], &["four", "three"]),
        (&["--reason", "Retries-Exhausted", "--exit-code", "4"], &["four"]),
        (&["--reason", "user"], &["stopped"]),
        (&["--cause", cause], &["three"]),
        (&["--cause", "three"], &["three"]),
        (&["--id-prefix", "fo"], &["four"]),
        (&["--id-prefix", "fo*"], &[]),
        (&["--id-prefix", "f"], &["fine", "four"]),
        (&["--changed-after", "1h", "--state", "dead"], &["four", "three"]),
        (&["--changed-after", "2026-01-31T09:30:00Z", "--id-prefix", "t"], &["three"]),
        (&["--changed-after", "2199-01-31T09:30:00Z"], &[]),
    ] {
        assert_eq!(listed(&home, args), expected, "{args:?}");
    }
    assert_eq!(listed(&home, &["--schedule", "nightly"]).len(), 1);
}

#[test]
fn jobs_are_selected_by_their_worker() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    assert_eq!(listed(&home, &["--worker", "w1"]), ["a"]);
    assert!(listed(&home, &["--worker", "w2"]).is_empty());
}

#[test]
fn a_filter_that_cannot_match_is_refused_or_hinted_at() {
    let home = mixed();
    home.run(["list", "--reason", "retries_exausted"])
        .fails(2)
        .says("unknown reason `retries_exausted`")
        .says("retries_exhausted");
    home.run(["list", "--exit-code", "x"]).fails(2);
    home.run(["list", "--changed-after", "yesterweek"]).fails(2).says("2026-01-31T09:30:00Z");
    home.run(["list", "--cause", "nope"]).fails(3);
    home.run(["list", "--worker", "a b"]).fails(2).says("invalid worker");
    home.run(["list", "--schedule", "nigthly"]).ok().says("did you mean `nightly`?");
}

#[test]
fn verbs_that_change_jobs_accept_them() {
    let home = mixed();
    home.run(["retry", "--exit-code", "3"]).ok();
    assert_eq!(listed(&home, &["--state", "dead"]), ["four"]);
    home.run(["cancel", "--schedule", "nightly"]).ok();
    assert!(listed(&home, &["--schedule", "nightly", "--state", "pending"]).is_empty());
    home.run(["dlq", "purge", "--exit-code", "4", "--yes"]).ok();
    assert!(listed(&home, &["--state", "dead"]).is_empty());
}
