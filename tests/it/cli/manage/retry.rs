use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

#[test]
fn every_job_that_is_not_waiting_can_be_retried_with_all_its_retries() {
    let home = Home::new();
    home.completed_job("completed");
    home.dead_job("dead", "exit code 1");
    home.failed_job("failed");
    home.run(["enqueue", "--id", "cancelled", "--", "true"]).ok();
    home.run(["cancel", "cancelled"]).ok();
    for (id, attempts) in [("completed", 1), ("dead", 1), ("failed", 1), ("cancelled", 0)] {
        home.run(["retry", id]).ok().prints(&format!("{id}\n")).says_nothing();
        let job = home.show(id);
        assert_eq!((&job["state"], &job["failures"]), (&json!("pending"), &json!(0)), "{id}");
        assert_eq!(
            (&job["attempts"], &job["error"]),
            (&json!(attempts), &json!(null)),
            "{id}: the count of attempts continues"
        );
        assert_eq!(job["history"].as_array().map(Vec::len), Some(attempts), "{id}: history is kept");
    }
}

#[test]
fn fault_11_retrying_a_pending_or_running_job_is_a_conflict() {
    let home = Home::with_jobs(&["runs", "waits"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("runs");
    home.run(["retry", "waits"]).fails(4).says("it is pending");
    home.run(["retry", "runs"])
        .fails(4)
        .says("it is processing")
        .says("cancel it first: `queuectl cancel runs`");
    home.run(["edit", "runs", "--priority", "1"]).fails(4).says("cancel it first: `queuectl cancel runs`");
    assert_eq!(
        (home.state_of("runs"), home.state_of("waits")),
        ("processing".to_owned(), "pending".to_owned())
    );
}

#[test]
fn a_selection_without_a_match_names_the_states_of_the_others() {
    let home = Home::new();
    home.run([
        "enqueue",
        "-q",
        "--batch",
        "b",
        "[{\"id\":\"x\",\"command\":\"true\"},{\"id\":\"y\",\"command\":\"true\"}]",
    ])
    .ok();
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("x");
    home.run(["retry", "--batch", "b"])
        .ok()
        .prints("0\n")
        .says("hint: no jobs matched: 1 job is pending and cannot be retried; 1 job is processing and cannot be retried");
    drop(worker);
    let home = Home::new();
    home.run(["enqueue", "-q", "--batch", "b", "--id", "x", "--", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["retry", "--batch", "b"])
        .ok()
        .prints("0\n")
        .says("hint: no jobs matched: 1 job is completed; to retry it, add --state completed");
    home.run(["cancel", "--batch", "b"]).ok().says("1 job is completed and cannot be cancelled");
    home.run(["retry", "--batch", "c"]).ok().says("there is no batch `c`");
    home.run(["retry", "--batch", "b", "--state", "completed"]).ok().prints("1\n");
}

#[test]
fn a_job_whose_unique_key_is_taken_is_a_conflict() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--unique-key", "k", "--", "true"]).ok();
    home.run(["cancel", "a"]).ok();
    home.run(["enqueue", "--id", "b", "--unique-key", "k", "--", "true"]).ok();
    home.run(["retry", "a"]).fails(4).says("job `b` holds its unique key");
    assert_eq!(home.state_of("a"), "cancelled");
}

#[test]
fn an_unknown_job_is_not_found() {
    let home = Home::with_queue();
    home.run(["retry", "nope"]).fails(3).says("there is no job `nope`");
    home.run(["retry"]).fails(2);
}

/// fetch, then build, then test and lint, then deploy, then notify. Build is dead.
fn dead_pipeline() -> Home {
    let home = Home::new();
    home.completed_job("fetch");
    for (id, parents) in [
        ("build", "fetch"),
        ("test", "build"),
        ("lint", "build"),
        ("deploy", "test,lint"),
        ("notify", "deploy"),
    ] {
        home.run(["enqueue", "-q", "--id", id, "--max-retries", "0", "--depends-on", parents, "--", "false"])
            .ok();
    }
    home.kill_next("build", "exit code 3: boom");
    home
}

#[test]
fn a_retry_says_that_one_dependent_stays_cancelled() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "first", "--max-retries", "0", "--", "false"]).ok();
    home.run(["enqueue", "-q", "--id", "next", "--depends-on", "first", "--", "true"]).ok();
    home.kill_next("first", "exit code 1");
    home.run(["retry", "first"]).ok().says(
        "hint: 1 job that depends on first stays cancelled (next); \
         `queuectl retry --with-dependents first` retries it\n",
    );
}

#[test]
fn a_retry_says_which_dependents_stay_cancelled() {
    let home = dead_pipeline();
    let ran = home.run(["retry", "build"]).ok().prints("build\n");
    assert_eq!(
        ran.stderr,
        "hint: 4 jobs that depend on build stay cancelled (test, lint, deploy, notify); \
         `queuectl retry --with-dependents build` retries them\n"
    );
    let ran = home.run(["retry", "--with-dependents", "build"]).ok().says_nothing();
    assert_eq!(ran.lines(), ["test", "lint", "deploy", "notify"], "build is pending already");
    home.run(["retry", "--with-dependents", "build"]).fails(4).says("it is pending");
    home.run(["retry", "nope", "--with-dependents"]).fails(3).says("there is no job `nope`");
}

#[test]
fn dependents_are_retried_in_their_order() {
    let home = dead_pipeline();
    let ran = home.run(["retry", "build", "--with-dependents"]).ok().says_nothing();
    assert_eq!(ran.lines(), ["build", "test", "lint", "deploy", "notify"]);
    home.run(["explain", "deploy"]).ok().shows("it waits for 2 other jobs");
    home.run(["list", "--state", "ready", "--format", "ids"]).ok().prints("build\n");
    home.run(["retry", "--with-dependents", "--state", "dead"]).fails(2).says("not a selection");
    home.run(["retry", "build", "--with-dependents", "--edit"]).fails(2);
}

#[test]
fn a_dependent_that_needs_another_dead_job_is_left_alone() {
    let home = dead_pipeline();
    home.dead_job("approve", "exit code 1");
    home.run(["enqueue", "-q", "--id", "release", "--depends-on", "build,approve", "--", "true"]).ok();
    assert_eq!(home.state_of("release"), "cancelled");
    let ran = home.run(["retry", "build", "--with-dependents"]).ok();
    assert_eq!(ran.lines(), ["build", "test", "lint", "deploy", "notify"]);
    assert_eq!(ran.stderr, "hint: not retried, because another job that they depend on failed: release\n");
    assert_eq!(home.state_of("release"), "cancelled");
    let ran = home.run(["retry", "approve", "--with-dependents", "--dry-run"]).ok();
    assert!(ran.stdout.starts_with("Would retry 2 jobs"), "{ran}");
}

#[test]
fn a_dependent_is_not_retried_while_its_dependency_is_dead() {
    let home = dead_pipeline();
    let ran = home.run(["retry", "test", "--with-dependents"]).fails(4);
    assert!(ran.stdout.is_empty(), "{ran}");
    let ran = ran.says("job `test` cannot be retried (it depends on job `build`, which is dead)");
    let _ = ran.says("hint: `queuectl retry --with-dependents build` retries it and its dependents");
    home.run(["retry", "--yes", "--state", "cancelled"]).ok().prints("0\n").says("4 jobs were skipped");
    assert_eq!(home.state_of("test"), "cancelled");
    home.run(["retry", "test"]).ok().prints("test\n");
    home.run(["retry", "--yes", "--state", "dead,cancelled"]).ok().prints("4\n");
    home.run(["list", "--state", "ready", "--format", "ids"]).ok().prints("test\nbuild\n");
}

#[test]
fn the_hint_after_a_retry_does_not_run_a_completed_job_again() {
    let home = dead_pipeline();
    home.run(["retry", "build"]).ok().says("`queuectl retry --with-dependents build`");
    home.run(["edit", "-q", "build", "--command", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(home.state_of("build"), "completed");
    let ran = home.run(["retry", "--with-dependents", "build"]).ok();
    assert_eq!(ran.lines(), ["test", "lint", "deploy", "notify"], "build is completed");
    assert_eq!(home.state_of("build"), "completed");
}
