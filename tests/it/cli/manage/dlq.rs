use serde_json::json;

use crate::cli::harness::{Home, ids};

fn with_dead(ids: &[&str]) -> Home {
    let home = Home::new();
    for id in ids {
        home.dead_job(id, &format!("exit code 1: no file {id}.{}", id.len()));
    }
    home
}

#[test]
fn only_dead_jobs_are_listed() {
    let home = with_dead(&["a", "b"]);
    home.failed_job("c");
    let dead = home.run(["dlq", "list", "--json"]).ok().json();
    assert_eq!(ids(&dead), ["b", "a"]);
    assert_eq!((&dead[0]["state"], &dead[0]["reason"]), (&json!("dead"), &json!("retries_exhausted")));
    home.run(["dlq", "list", "--limit", "1"]).ok().says("--after b");
    let rest = home.run(["dlq", "list", "--limit", "1", "--after", "b", "--json"]).ok().json();
    assert_eq!(ids(&rest), ["a"]);
}

#[test]
fn an_empty_dlq_is_an_empty_array() {
    let home = Home::with_jobs(&["a"]);
    home.run(["dlq", "list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["dlq", "list", "--group", "--json"]).ok().prints("[]\n");
    home.run(["dlq", "list", "--group"]).ok().prints("").says("hint: no dead jobs");
}

#[test]
fn show_accepts_only_dead_jobs() {
    let home = with_dead(&["a"]);
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["dlq", "show", "a"]).ok().shows("a  dead").shows("retries exhausted");
    assert_eq!(home.run(["dlq", "show", "a", "--json"]).ok().json()["history"][0]["exit_code"], 1);
    home.run(["dlq", "show", "b"]).fails(4).says("it is pending");
    home.run(["dlq", "show", "nope"]).fails(3);
}

#[test]
fn retry_makes_them_pending_again() {
    let home = with_dead(&["a", "b"]);
    home.run(["dlq", "retry", "a"]).ok().prints("a\n");
    assert_eq!((home.state_of("a"), home.state_of("b")), ("pending".to_owned(), "dead".to_owned()));
    assert_eq!(home.show("a")["failures"], 0);
}

#[test]
fn retry_all_prints_the_count() {
    let home = with_dead(&["a", "b", "c"]);
    for selection in [&["--all"][..], &["--queue", "default"]] {
        let args = ["dlq", "retry"].iter().chain(selection);
        home.run(args).fails(2).says("this would retry 3 jobs").says("--yes");
    }
    home.run(["dlq", "retry", "--all", "--yes"]).ok().prints("3\n");
    home.run(["dlq", "retry", "--all", "--json"]).ok().prints("{\"count\":0}\n");
    home.run(["dlq", "list", "--json"]).ok().prints("[]\n");
}

#[test]
fn retry_of_one_job_or_of_named_ones_needs_no_confirmation() {
    let home = with_dead(&["a"]);
    home.run(["dlq", "retry", "--all"]).ok().prints("1\n");
    let home = with_dead(&["a", "b"]);
    home.run(["dlq", "retry", "a", "b"]).ok().prints("a\nb\n");
}

#[test]
fn fault_11_jobs_that_are_not_dead_stay_unchanged() {
    let home = with_dead(&["a"]);
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    for verb in ["retry", "purge"] {
        home.run(["dlq", verb, "b"]).fails(4).prints("").says("job `b` is not dead (it is pending)");
        home.run(["dlq", verb, "nope"]).fails(3).says("there is no job `nope`");
        assert_eq!(home.state_of("b"), "pending");
    }
    home.run(["dlq", "retry", "a", "b"]).fails(4).prints("a\n");
}

#[test]
fn show_of_a_job_that_is_not_dead_names_its_state() {
    let home = Home::with_jobs(&["a"]);
    let ran = home.run(["dlq", "show", "a"]).fails(4).prints("");
    ran.says("error: job `a` is not dead (it is pending)\nhint: `queuectl show a` shows it\n");
}

#[test]
fn the_highest_exit_code_of_both_steps_is_returned() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--unique-key", "k", "--max-retries", "0", "--", "false"]).ok();
    home.kill_next("a", "exit code 1");
    home.run(["enqueue", "-q", "--id", "b", "--unique-key", "k", "--", "true"]).ok();
    home.run(["dlq", "retry", "nope", "a"]).fails(4).says("`nope`").says("holds its unique key");
}

#[test]
fn purge_deletes_and_asks_before_more_than_one() {
    let home = with_dead(&["a", "b", "c"]);
    home.run(["dlq", "purge", "a"]).ok().prints("a\n");
    home.run(["dlq", "purge", "b", "c"]).fails(2).says("this would purge 2 jobs").says("--yes");
    home.run(["dlq", "purge", "--all"]).fails(2).says("this would purge 2 jobs");
    assert_eq!(home.count(), 2);
    home.run(["dlq", "purge", "--all", "--yes"]).ok().prints("2\n");
    assert!(home.is_empty());
    home.run(["dlq", "purge", "--all"]).ok().prints("0\n");
}

#[test]
fn jobs_are_given_either_by_id_or_by_selection() {
    let home = with_dead(&["a"]);
    for verb in ["retry", "purge"] {
        home.run(["dlq", verb]).fails(2);
        home.run(["dlq", verb, "a", "--all"]).fails(2);
    }
    assert_eq!(home.state_of("a"), "dead");
}
