//! `queuectl explain`

use serde_json::Value;

use crate::cli::harness::Home;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome, wait_until};

fn codes(home: &Home, id: &str) -> Vec<String> {
    let explained = home.run(["explain", id, "--json"]).ok().json();
    let reasons = explained["reasons"].as_array().expect("reasons").clone();
    reasons.iter().map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect()
}

#[test]
fn explain_reports_what_holds_a_job_back() {
    let home = Home::with_jobs(&["a"]);
    home.run(["explain", "a"]).ok().shows("Job a is pending.").shows("no worker is running");
    home.run(["enqueue", "-q", "--id", "b", "--delay", "1h", "--depends-on", "a", "--", "true"]).ok();
    assert_eq!(codes(&home, "b"), ["blocked", "scheduled", "no_worker"]);
    let explained = home.run(["explain", "b", "--json"]).ok().json();
    assert_eq!(explained["reasons"][0]["jobs"], serde_json::json!([{"id": "a", "state": "pending"}]));
    assert_eq!(explained["probable_start"], Value::Null);
    home.run(["explain", "absent"]).fails(3);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["explain", "a"]).ok().shows("Job a is completed.");
    assert_eq!(codes(&home, "b"), ["scheduled", "no_worker"]);
    home.run(["cancel", "-q", "b"]).ok();
    home.run(["explain", "b"]).ok().shows("it was cancelled").shows("(user)");
    home.run(["enqueue", "-q", "--id", "c", "--delay", "1h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "d", "--depends-on", "a,c", "--", "true"]).ok();
    let explained = home.run(["explain", "d", "--json"]).ok().json();
    let waits_for = serde_json::json!([{"id": "c", "state": "pending"}]);
    assert_eq!(explained["reasons"][0]["jobs"], waits_for, "a is completed");
}

#[test]
fn explain_reports_jobs_ahead_and_workers() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "quick", "--", "true"]).ok();
    home.run(["worker", "start", "-q", "--queue", "default"]).ok();
    home.wait_for_state("quick", "completed");
    home.run(["enqueue", "-q", "--id", "runs", "--command", UNTIL_GO]).ok();
    home.wait_for_state("runs", "processing");
    for id in ["next", "last"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    home.run(["enqueue", "-q", "--id", "elsewhere", "--queue", "other", "--", "true"]).ok();
    assert_eq!(codes(&home, "runs"), ["running"]);
    assert_eq!(codes(&home, "next"), ["slots_busy"]);
    home.run(["explain", "next"]).ok().shows("the only slot is busy: runs for ");
    let explained = home.run(["explain", "next", "--json"]).ok().json();
    assert_eq!(explained["reasons"][0]["jobs"], serde_json::json!([{"id": "runs", "state": "processing"}]));
    assert_eq!(codes(&home, "last"), ["slots_busy", "behind"]);
    assert_eq!(codes(&home, "elsewhere"), ["queue_not_served"]);
    home.run(["explain", "last"]).ok().shows("1 job is ahead of it");
    wait_until("the job has run much longer than usual", || {
        let text = "\nNo estimate: the running jobs already take longer than usual.\n";
        home.run(["explain", "last"]).ok().stdout.contains(text)
    });
    home.go();
}

#[test]
fn a_job_cancelled_with_its_dependency_names_it_and_its_error() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "build", "--max-retries", "0", "--", "false"]).ok();
    home.run(["enqueue", "-q", "--id", "test", "--depends-on", "build", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "deploy", "--depends-on", "test", "--", "true"]).ok();
    home.kill_next("build", "exit code 3: boom");
    let why = "because build is dead (exit code 3: boom)";
    for id in ["test", "deploy"] {
        home.run(["explain", id]).ok().shows(why).shows("`queuectl retry --with-dependents build`");
        home.run(["show", id]).ok().shows(&format!("reason        cancelled {why}\n"));
        home.run(["wait", id]).fails(1).says(&format!("error: job `{id}` is cancelled {why}\n"));
        let explained = home.run(["explain", id, "--json"]).ok().json();
        assert_eq!(explained["reasons"][0]["jobs"], serde_json::json!([{"id": "build", "state": "dead"}]));
        assert_eq!(home.show(id)["reason"], "dependency");
    }
    home.run(["retry", "-q", "build"]).ok();
    home.run(["explain", "test"]).ok().shows("it was cancelled").shows("(dependency)");
    home.run(["enqueue", "-q", "--id", "other", "--delay", "1h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "after", "--depends-on", "other", "--", "true"]).ok();
    home.run(["cancel", "-q", "other"]).ok();
    home.run(["explain", "after"]).ok().shows("because other is cancelled (user)");
}
