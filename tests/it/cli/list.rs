use serde_json::json;

use super::harness::{Home, ids};
use super::test_worker::TestWorker;

fn listed(home: &Home, args: &[&str]) -> Vec<String> {
    let jobs = home.run(["list", "--json"].iter().chain(args)).ok().json();
    ids(&jobs).into_iter().map(str::to_owned).collect()
}

/// One job in every state, and one for each of the finer filters.
fn menagerie() -> Home {
    let home = Home::new();
    home.completed_job("completed");
    home.dead_job("dead", "exit code 1: boom");
    home.failed_job("failed");
    home.run(["enqueue", "--id", "processing", "--", "true"]).ok();
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("processing");
    for (id, flags) in [
        ("cancelled", ["--priority", "0"]),
        ("ready", ["--tag", "nice"]),
        ("scheduled", ["--delay", "1h"]),
        ("blocked", ["--depends-on", "scheduled"]),
        ("mail", ["--queue", "mail"]),
    ] {
        home.run(["enqueue", "--id", id].into_iter().chain(flags).chain(["--", "true"])).ok();
    }
    home.run(["cancel", "cancelled"]).ok();
    home
}

#[test]
fn filters_choose_by_state_queue_and_tag() {
    let home = menagerie();
    for (args, expected) in [
        (["--state", "pending"].as_slice(), ["mail", "blocked", "scheduled", "ready"].as_slice()),
        (&["--state", "processing"], &["processing"]),
        (&["--state", "completed"], &["completed"]),
        (&["--state", "failed"], &["failed"]),
        (&["--state", "dead"], &["dead"]),
        (&["--state", "cancelled"], &["cancelled"]),
        (&["--state", "ready"], &["ready", "mail"]),
        (&["--state", "scheduled"], &["scheduled"]),
        (&["--state", "blocked"], &["blocked"]),
        (&["--queue", "mail"], &["mail"]),
        (&["--tag", "nice"], &["ready"]),
        (&["--tag", "nice", "--queue", "mail"], &[]),
        (&["--queue", "mail", "--state", "ready"], &["mail"]),
        (&["--state", "dead", "--queue", "mail"], &[]),
    ] {
        assert_eq!(listed(&home, args), expected, "{args:?}");
    }
    assert_eq!(listed(&home, &[]).len(), 9);
}

#[test]
fn nothing_is_an_empty_array_and_a_hint_for_people() {
    let home = Home::new();
    home.run(["list", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["list"]).ok().prints("").says("hint: ");
    home.run(["list", "-q"]).ok().prints("").says_nothing();
}

#[test]
fn a_table_with_the_newest_first() {
    let home = Home::new();
    home.run(["enqueue", "--id", "first", "--", "echo", "hello world"]).ok();
    home.run(["enqueue", "--id", "b", "--queue", "mail", "--priority", "10", "--delay", "3h", "--", "true"])
        .ok();
    let ran = home.run(["list"]).ok();
    let lines = ran.lines();
    assert_eq!(lines[0], "ID     STATE    QUEUE    PRIO  TRIES  WHEN      COMMAND");
    assert_eq!(lines[1], "b      pending  mail       10    0/4  in 2h59m  true");
    assert!(lines[2].starts_with("first  pending  default     0    0/4  "), "{}", lines[2]);
    assert!(lines[2].ends_with("  echo 'hello world'"), "{}", lines[2]);
}

#[test]
fn pages_follow_each_other_without_a_gap() {
    let names: Vec<String> = (0..7).map(|at| format!("j{at}")).collect();
    let home = Home::new();
    let batch: Vec<_> = names.iter().map(|id| json!({"id": id, "command": "true"})).collect();
    home.run(["enqueue", "-q", &json!(batch).to_string()]).ok();

    let mut seen = Vec::new();
    let mut args = vec!["--limit".to_owned(), "3".to_owned()];
    loop {
        let ran = home.run(["list".to_owned(), "--json".to_owned()].iter().chain(&args)).ok();
        let page = ran.json();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(last) = seen.last().filter(|_| !ran.stderr.is_empty()).cloned() else {
            break;
        };
        assert_eq!(ran.stderr, format!("hint: there are more; go on with --after {last}\n"));
        args = ["--limit", "3", "--after", &last].map(str::to_owned).to_vec();
    }
    let newest_first: Vec<String> = names.into_iter().rev().collect();
    assert_eq!(seen, newest_first);
}

#[test]
fn a_page_that_ends_with_the_list_says_nothing() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["list", "--limit", "2"]).ok().says_nothing();
    home.run(["list", "--limit", "1"]).ok().says("--after b");
    home.run(["list", "--limit", "18446744073709551615", "--json"]).ok().says_nothing();
}

#[test]
fn a_hundred_unless_told_otherwise() {
    let home = Home::new();
    let lines = "{\"command\":\"true\"}\n".repeat(150);
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    assert_eq!(listed(&home, &[]).len(), 100);
    assert_eq!(listed(&home, &["--limit", "1000"]).len(), 150);
}

#[test]
fn ready_is_the_order_of_claiming() {
    let home = Home::new();
    for (id, priority) in [("low", "-1"), ("first", "0"), ("second", "0"), ("high", "9")] {
        home.run(["enqueue", "--id", id, "--priority", priority, "--", "true"]).ok();
    }
    assert_eq!(listed(&home, &["--state", "ready"]), ["high", "first", "second", "low"]);
    assert_eq!(listed(&home, &["--state", "ready", "--after", "first"]), ["second", "low"]);
}

#[test]
fn an_unknown_queue_is_empty_and_the_nearest_is_offered() {
    let home = Home::with_jobs(&["a"]);
    home.run(["list", "--queue", "defalt", "--json"]).ok().prints("[]\n").says("did you mean default?");
    home.run(["list", "--queue", "mail"]).ok().prints("").says("there is no queue mail");
    home.run(["list", "--queue", "default"]).ok().says_nothing();
}

#[test]
fn wrong_filters_are_refused() {
    let home = Home::with_jobs(&["a"]);
    for (args, code, message) in [
        (["--state", "daed"], 2, "did you mean `dead`?"),
        (["--state", "colour"], 2, "the states are pending, processing"),
        (["--queue", "a b"], 2, "invalid queue `a b`"),
        (["--limit", "-1"], 2, "-1"),
        (["--limit", "many"], 2, "invalid value 'many'"),
        (["--after", "nope"], 3, "there is no job `nope`"),
        (["--after", "../x"], 2, "invalid id `../x`"),
    ] {
        home.run(["list"].into_iter().chain(args)).fails(code).prints("").says(message);
    }
}
