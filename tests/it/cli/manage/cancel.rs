use serde_json::json;

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

#[test]
fn a_waiting_job_is_cancelled_at_once() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["cancel", "a"]).ok().prints("a\n").says_nothing();
    let job = home.show("a");
    assert_eq!((&job["state"], &job["reason"]), (&json!("cancelled"), &json!("user")));
    assert_eq!(home.state_of("b"), "pending");
}

#[test]
fn a_failed_job_can_be_cancelled() {
    let home = Home::new();
    home.failed_job("a");
    home.run(["cancel", "a"]).ok();
    assert_eq!(home.state_of("a"), "cancelled");
}

#[test]
fn a_running_job_is_marked_for_its_worker() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    home.run(["cancel", "a"]).ok().prints("a\n");
    assert_eq!(home.state_of("a"), "processing", "its worker has to end it");
    home.run(["show", "a"]).ok().shows("a  processing (being cancelled)\n");
}

#[test]
fn dependents_are_cancelled_with_the_job() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "--id", "b", "--depends-on", "a", "--", "true"]).ok();
    home.run(["cancel", "a"]).ok();
    assert_eq!(home.show("b")["reason"], "dependency");
}

#[test]
fn cancelled_dependents_are_listed() {
    let home = Home::with_jobs(&["a", "b"]);
    for (id, parent) in [("c", "a"), ("d", "c"), ("e", "b")] {
        home.run(["enqueue", "-q", "--id", id, "--depends-on", parent, "--", "true"]).ok();
    }
    let said = home.run(["cancel", "a", "b", "--json"]).ok().json();
    assert_eq!(said[0]["id"], "a", "the shape of a job");
    assert_eq!(said[0]["cancelled_dependents"], json!(["c", "d"]));
    assert_eq!(said[1]["cancelled_dependents"], json!(["e"]));
    home.run(["retry", "-q", "a", "b", "c", "d", "e"]).ok();
    // In a pipe, the ids are the data, and other effects are reported on standard error.
    home.run(["cancel", "a"])
        .ok()
        .prints("a\n")
        .says("cancelled with job a: 2 jobs that depend on it (c, d)");
    home.run(["cancel", "e"]).ok().prints("e\n").says_nothing();
    home.run(["retry", "-q", "a", "c", "d"]).ok();
    let tally = home.run(["cancel", "--yes", "--tag", "nothing", "--json"]).ok().json();
    assert_eq!(tally, json!({ "count": 0 }));
    home.run(["enqueue", "-q", "--id", "tagged", "--tag", "t", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "behind", "--depends-on", "tagged", "--", "true"]).ok();
    let tally = home.run(["cancel", "--yes", "--tag", "t", "--json"]).ok().json();
    assert_eq!(tally, json!({ "count": 1, "cancelled_dependents": 1 }));
}

#[test]
fn a_terminal_shows_the_cancelled_dependents() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "-q", "--id", "b", "--depends-on", "a", "--", "true"]).ok();
    let seen = on_terminal(home.call(["cancel", "a"]).into_command(), 80, "");
    assert!(seen.screen.contains("Job a cancelled, and 1 job that depends on it (b)"), "{}", seen.screen);
}

#[test]
fn fault_11_finished_jobs_stay_unchanged() {
    let home = Home::new();
    home.completed_job("done");
    home.dead_job("dead", "exit code 1");
    home.run(["enqueue", "--id", "gone", "--", "true"]).ok();
    home.run(["cancel", "gone"]).ok();
    for (id, state) in [("done", "completed"), ("dead", "dead"), ("gone", "cancelled")] {
        let refused = format!("job `{id}` cannot be cancelled (it is {state})");
        home.run(["cancel", id]).fails(4).prints("").says(&refused);
        assert_eq!(home.state_of(id), state);
    }
}

#[test]
fn all_ids_are_tried_and_the_highest_code_returned() {
    let home = Home::with_jobs(&["a", "b", "c"]);
    home.run(["cancel", "b"]).ok();
    let ran = home.run(["cancel", "a", "nope", "b", "c"]).fails(4).prints("a\nc\n");
    assert!(ran.stderr.contains("there is no job `nope`") && ran.stderr.contains("job `b`"), "{ran}");
    assert_eq!((home.state_of("a"), home.state_of("c")), ("cancelled".to_owned(), "cancelled".to_owned()));
}

#[test]
fn a_bad_id_among_good_ones_changes_nothing() {
    let home = Home::with_jobs(&["a"]);
    home.run(["cancel", "a", "../x"]).fails(2).prints("");
    assert_eq!(home.state_of("a"), "pending");
}

#[test]
fn json_is_an_array_of_changed_jobs_and_an_object_per_failure() {
    let home = Home::with_jobs(&["a"]);
    let ran = home.run(["cancel", "a", "nope", "--json"]).fails(3);
    assert_eq!(ids(&ran.json()), ["a"]);
    assert_eq!(ran.error_json()["exit_code"], 3);
    home.run(["cancel", "a", "--json"]).fails(4).prints("[]\n");
}

#[test]
fn an_unknown_signal_is_refused_with_the_usual_ones() {
    let home = Home::with_jobs(&["a"]);
    for typed in ["USR3", "0", "32", "", "SIG"] {
        let ran = home.run(["cancel", "a", "--signal", typed]).fails(2).prints("");
        assert!(ran.stderr.contains("HUP, INT, QUIT, TERM, USR1, USR2, KILL"), "{ran}");
    }
    home.run(["cancel", "a", "--signal", "stop"]).fails(2).says("queuectl pause");
    assert_eq!(home.state_of("a"), "pending");
    home.run(["cancel", "a", "--signal", "int"]).ok().prints("a\n");
    assert_eq!(home.state_of("a"), "cancelled", "a job that does not run gets no signal");
}

#[test]
fn without_an_id_a_terminal_takes_the_latest_job_that_can_be_cancelled() {
    let home = Home::with_jobs(&["old", "new"]);
    home.run(["cancel", "-q", "new"]).ok();
    let cancel = || on_terminal(home.call(["cancel", "--yes", "--color", "never"]).into_command(), 80, "");
    assert!(cancel().screen.contains("Job old cancelled"));
    let nothing = cancel();
    assert!(nothing.screen.contains("no job is waiting or running"), "{}", nothing.screen);
    assert_eq!(nothing.code, Some(3));
}
