use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

/// A home where a worker runs job `a`, and job `b` waits.
fn with_running_job() -> (Home, TestWorker) {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    (home, worker)
}

#[test]
fn a_running_job_is_paused_and_resumed() {
    let (home, _worker) = with_running_job();
    assert_eq!(home.show("a")["paused_at"], json!(null));
    home.run(["pause", "a"]).ok().prints("a\n").says_nothing();
    let job = home.show("a");
    assert_eq!(job["state"], "processing");
    assert!(job["paused_at"].is_string(), "{job}");
    home.run(["pause", "a"]).ok().prints("a\n");
    home.run(["resume", "a"]).ok().prints("a\n").says_nothing();
    home.run(["resume", "a"]).ok().prints("a\n");
    assert_eq!(home.show("a")["paused_at"], json!(null));
    let events = home.show("a")["events"].clone();
    assert_eq!(
        (&events[0]["event"], &events[1]["event"], events[2].is_null()),
        (&json!("pause"), &json!("resume"), true)
    );
    let about = home.run(["events"]).ok().stdout;
    assert!(about.contains("job a"), "{about}");
}

#[test]
fn every_view_says_that_a_job_is_paused() {
    let (home, _worker) = with_running_job();
    let paused = home.run(["pause", "a", "--json"]).ok().json();
    assert_eq!((&paused[0]["id"], paused[0]["paused_at"].is_string()), (&json!("a"), true));
    home.run(["list"]).ok().shows("  paused   ").shows("paused since ");
    home.run(["list", "--state", "paused", "--format", "ids"]).ok().prints("a\n");
    home.run(["show", "a"]).ok().shows("a  processing (paused since ");
    home.run(["status"]).ok().shows("job a has been paused since ").shows("`queuectl resume a`");
    home.run(["explain", "a"])
        .ok()
        .shows("it has been paused since ")
        .shows("`queuectl resume a` continues it");
    let status = home.run(["status", "--json"]).ok().json();
    let problems = status["problems"].as_array().expect("a list").iter();
    assert_eq!(problems.filter(|problem| problem["problem"] == "job_paused").count(), 1);
    // The worker stops the processes, a moment later.
    let seen = on_terminal(home.call(["pause", "a"]).into_command(), 80, "");
    assert!(seen.screen.contains("Job a is being paused by its worker"), "{}", seen.screen);
    let seen = on_terminal(home.call(["resume", "a"]).into_command(), 80, "");
    assert!(seen.screen.contains("Job a resumed"), "{}", seen.screen);
}

#[test]
fn only_running_jobs_can_be_paused() {
    let home = Home::new();
    home.completed_job("done");
    home.run(["enqueue", "-q", "--id", "waits", "--", "true"]).ok();
    for (verb, refused) in [("pause", "paused"), ("resume", "resumed")] {
        home.run([verb, "waits"])
            .fails(4)
            .prints("")
            .says(&format!("job `waits` cannot be {refused} (it is pending)"))
            .says("`queuectl queue pause QUEUE`");
        home.run([verb, "done"]).fails(4).says(&format!("job `done` cannot be {refused} (it is completed)"));
        home.run([verb, "nope"]).fails(3).says("there is no job `nope`");
        home.run([verb, "--state", "pending"]).fails(2).says("the states are processing, paused");
    }
}

#[test]
fn a_queue_or_a_schedule_is_paused_by_its_own_verb() {
    let home = Home::with_jobs(&["a"]);
    home.run(["schedule", "add", "nightly", "--every", "1h", "--", "true"]).ok();
    for verb in ["pause", "resume"] {
        home.run([verb]).fails(2).says(&format!("`queuectl queue {verb} QUEUE`"));
        home.run([verb, "default"]).fails(3).says(&format!("`queuectl queue {verb} default`"));
        home.run([verb, "nightly"]).fails(3).says(&format!("`queuectl schedule {verb} nightly`"));
    }
    home.run(["unpause", "a"]).fails(2).says("`queuectl resume JOB`");
}

#[test]
fn a_selection_is_paused_without_a_question_and_resume_takes_the_paused_ones() {
    let home = Home::with_jobs(&["a", "b", "c"]);
    let worker = TestWorker::new(&home, "w1");
    for id in ["a", "b", "c"] {
        worker.claim_job(id);
    }
    home.run(["pause", "a"]).ok();
    home.run(["pause", "--queue", "default", "--dry-run"]).ok().shows("Would pause 3 jobs: 3 processing");
    home.run(["resume", "--queue", "default", "--json"]).ok().shows("{\"count\":1}");
    home.run(["pause", "--queue", "default", "--json"]).ok().shows("{\"count\":3}");
    home.run(["status"]).ok().shows("job a has been paused");
    home.run(["resume", "--state", "paused", "--json"]).ok().shows("{\"count\":3}");
}

#[test]
fn an_export_of_a_paused_job_can_be_imported() {
    let (home, _worker) = with_running_job();
    home.run(["pause", "a"]).ok();
    let exported = home.run(["export"]).ok().stdout;
    let other = Home::new();
    let file = other.file("export.jsonl", exported);
    other.run(["import".into(), "-q".into(), file]).ok();
    let job = other.show("a");
    assert_eq!((&job["state"], &job["paused_at"]), (&json!("pending"), &json!(null)));
}
