use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, ids};

#[test]
fn one_job_is_removed_without_confirmation() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["remove", "a"]).ok().prints("a\n").says_nothing();
    home.run(["show", "a"]).fails(3);
    assert_eq!(home.count(), 1);
}

#[test]
fn several_jobs_need_confirmation() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["remove", "a", "b"]).fails(2).says("this would remove 2 jobs").says("--yes");
    assert_eq!(home.count(), 2);
    home.run(["remove", "a", "b", "--yes"]).ok().prints("a\nb\n");
    assert!(home.is_empty());
}

#[test]
fn only_jobs_that_would_be_removed_are_counted() {
    let home = Home::with_jobs(&["a", "b", "runs"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    home.run(["remove", "b", "nosuch"]).fails(3).prints("b\n").says("there is no job `nosuch`");
    home.run(["remove", "runs", "a"]).fails(4).prints("runs\n").says("it is processing");
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["remove", "a", "b", "nosuch"]).fails(2).says("this would remove 2 jobs");
    assert_eq!(home.count(), 2);
}

#[test]
fn a_removed_id_is_free_again() {
    let home = Home::with_jobs(&["a"]);
    home.run(["remove", "a"]).ok();
    home.run(["enqueue", "--id", "a", "--", "true"]).ok().prints("a\n");
}

#[test]
fn a_running_job_is_not_removed() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    home.run(["remove", "a"])
        .fails(4)
        .says("it is processing")
        .says("hint: it is running; cancel it first: `queuectl cancel a`");
    assert_eq!(home.state_of("a"), "processing");
}

#[test]
fn a_job_with_waiting_dependents_is_not_removed() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "--id", "b", "--depends-on", "a", "--", "true"]).ok();
    let refused = home.run(["remove", "a"]).fails(4);
    refused
        .says("an unfinished job depends on it")
        .says("hint: cancel or remove the dependent jobs first; `queuectl graph a`");
    assert_eq!(home.count(), 2);
}

#[test]
fn all_ids_are_tried() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["remove", "a", "nope", "b", "-y"]).fails(3).prints("a\nb\n").says("`nope`");
    assert!(home.is_empty());
}

#[test]
fn json_shows_the_jobs_as_they_were() {
    let home = Home::with_jobs(&["a"]);
    let removed = home.run(["remove", "a", "--json"]).ok().json();
    assert_eq!(ids(&removed), ["a"]);
    assert_eq!(removed[0]["state"], "pending");
}
