//! `worker.log`: the events of workers, line by line.

use crate::engine::harness::{Home, Pool, history};

/// The text of each line, without its time and its worker.
fn said(home: &Home) -> Vec<String> {
    home.journal().lines().map(|line| line.splitn(3, ' ').nth(2).expect("three parts").to_owned()).collect()
}

#[test]
fn the_journal_has_the_start_and_the_end_of_each_attempt() {
    let home = Home::new();
    home.set("retry_delay", "50ms");
    home.enqueue_with("bad", "echo no luck >&2; exit 3", "--max-retries 1");
    home.enqueue("good", "true");
    Pool::drain(&home, "");
    let said = said(&home);
    let job = home.show("bad");
    let retry_at = said.iter().find_map(|line| line.split_once("retry at ")).expect("a retry").1;
    let second = history(&job)[1]["started_at"].as_str().expect("a time");
    assert!(retry_at <= second, "{retry_at} {second}");
    for (begins, ends) in [
        ("worker started: pid ", ", 1 slot"),
        ("start bad attempt 1: echo no luck >&2; exit 3", ""),
        ("end bad attempt 1: exit code 3: no luck (", retry_at),
        ("start bad attempt 2: ", ""),
        ("end bad attempt 2: exit code 3: no luck (", "ms), dead: retries exhausted"),
        ("start good attempt 1: true", ""),
        ("end good attempt 1: completed (", "ms)"),
        ("worker draining", ""),
        ("worker stopped", ""),
    ] {
        let is_it = |line: &&String| line.starts_with(begins) && line.ends_with(ends);
        assert_eq!(said.iter().filter(is_it).count(), 1, "{begins} … {ends}: {said:#?}");
    }
}

#[test]
fn an_attempt_that_could_not_be_started_has_an_end_line_and_no_start_line() {
    let home = Home::new();
    let gone = home.folder().join("gone");
    std::fs::create_dir(&gone).expect("a folder");
    home.enqueue_with("it", "true", &format!("--max-retries 0 --cwd {}", gone.display()));
    std::fs::remove_dir(&gone).expect("it is empty");
    Pool::drain(&home, "");
    let said = said(&home);
    assert!(said.iter().any(|line| line.starts_with("end it attempt 1: could not be started")), "{said:#?}");
    assert!(!said.iter().any(|line| line.starts_with("start it")), "{said:#?}");
}
