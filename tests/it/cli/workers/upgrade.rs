//! Workers whose program is replaced while they run, as a package manager does it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome, wait_until};
use crate::cli::harness::{RunResult, copy_program};

/// The problems of the queue, by name.
fn problems(home: &WorkingHome) -> Vec<String> {
    let status = home.run(["status", "--json"]).ok().json();
    let problems = status["problems"].as_array().expect("an array").iter();
    problems.map(|problem: &Value| problem["problem"].as_str().expect("a name").to_owned()).collect()
}

/// A program that knows one more version of the schema.
fn newer(home: &WorkingHome, args: &[&str]) -> RunResult {
    let migration = home.file("newer.sql", "alter table jobs add column made_up integer");
    home.call(args).env("QUEUECTL_MIGRATIONS", migration).run()
}

/// A program that knows one more version of the schema, under which the workers of this version may finish their jobs.
fn newer_that_lets_finish(home: &WorkingHome, args: &[&str]) -> RunResult {
    let version = store::sqlite::SCHEMA_VERSION + 1;
    let statements = format!(
        "alter table jobs add column made_up integer;
         create table if not exists finishable_versions (version integer primary key) strict;
         insert into finishable_versions (version) values ({version})"
    );
    home.call(args).env("QUEUECTL_MIGRATIONS", home.file("newer.sql", &statements)).run()
}

/// How the attempts of a job ended.
fn outcomes(shown: RunResult) -> Vec<String> {
    let job = shown.ok().json();
    let attempts = job["history"].as_array().expect("attempts").iter();
    attempts.map(|attempt| attempt["outcome"].as_str().expect("a name").to_owned()).collect()
}

/// The harness opens the queue at the end, and does not know the new version.
fn forget_new_version(home: &WorkingHome) {
    let database = rusqlite::Connection::open(home.path().join("queue.db")).expect("the database opens");
    database.pragma_update(None, "user_version", store::sqlite::SCHEMA_VERSION).expect("it is written");
}

#[test]
fn workers_end_when_a_newer_program_has_migrated_the_queue() {
    let home = WorkingHome::new();
    home.run(["enqueue", "--id", "a", "--", "sh", "-c", UNTIL_GO]).ok();
    home.run(["enqueue", "--id", "b", "--", "true"]).ok();
    let older = Background::start(home.call(["worker", "run", "-q"]));
    home.wait_for_state("a", "processing");
    newer(&home, &["enqueue", "-q", "--id", "c", "--", "true"]).ok();
    let status = newer(&home, &["status"]).ok();
    status.shows("runs a queuectl that is older than the schema of the queue");
    let (ended, said) = older.end();
    let said = said.join("\n");
    assert_eq!(ended.code(), Some(7), "{said}");
    assert!(said.contains("newer than the"), "{said}");
    home.run(["list"]).fails(7).says("newer than the");
    home.go();
    newer(&home, &["worker", "run", "-q", "--until-empty"]).ok();
    let history = |id: &str| outcomes(newer(&home, &["show", id, "--json"]));
    assert_eq!(history("a"), ["lost", "success"], "its command was ended and ran again");
    assert_eq!((history("b"), history("c")), (vec!["success".to_owned()], vec!["success".to_owned()]));
    let status = newer(&home, &["status", "--json"]).ok().json();
    assert_eq!(status["problems"], Value::Array(Vec::new()));
    forget_new_version(&home);
}

#[test]
fn workers_finish_their_jobs_where_the_newer_schema_lets_them() {
    let home = WorkingHome::new();
    home.run(["enqueue", "--id", "a", "--", "sh", "-c", UNTIL_GO]).ok();
    home.run(["hook", "add", "heard", "--on", "success", "--", "sh", "-c", "cat >> heard"]).ok();
    let older = Background::start(home.call(["worker", "run", "-q", "--concurrency", "2"]));
    home.wait_for_state("a", "processing");
    newer_that_lets_finish(&home, &["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    let status = newer_that_lets_finish(&home, &["status", "--json"]).ok().json();
    // It may already drain, which is another problem.
    let mut problems = status["problems"].as_array().into_iter().flatten();
    assert!(problems.any(|problem| problem["problem"] == "outdated_worker"), "{status}");
    wait_until("the worker drains", || {
        let workers = newer_that_lets_finish(&home, &["worker", "list", "--json"]).ok().json();
        workers[0]["state"] == "draining"
    });
    let state =
        |id: &str| newer_that_lets_finish(&home, &["show", id, "--json"]).ok().json()["state"].clone();
    assert_eq!(
        (state("a"), state("b")),
        ("processing".into(), "pending".into()),
        "a slot is free, but it claims nothing"
    );
    home.go();
    let (ended, said) = older.end();
    let said = said.join("\n");
    assert_eq!(ended.code(), Some(7), "{said}");
    assert!(said.contains("newer than the") && !said.contains("crashed"), "{said}");
    assert_eq!(outcomes(newer_that_lets_finish(&home, &["show", "a", "--json"])), ["success"]);
    assert_eq!(state("b"), "pending");
    newer_that_lets_finish(&home, &["logs", "a"]).ok().shows("went");
    newer_that_lets_finish(&home, &["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(outcomes(newer_that_lets_finish(&home, &["show", "b", "--json"])), ["success"]);
    assert!(home.folder().join("heard").is_file(), "the newer worker called the hook");
    let status = newer_that_lets_finish(&home, &["status", "--json"]).ok().json();
    assert_eq!(status["problems"], Value::Array(Vec::new()));
    newer_that_lets_finish(&home, &["doctor", "--full"]).ok();
    forget_new_version(&home);
}

fn run_copy(home: &WorkingHome, program: &Path, args: &[&str]) {
    home.call(args).through(Command::new(program)).run().ok();
}

#[test]
fn workers_keep_the_replaced_program_and_status_says_so_until_they_restart() {
    let home = WorkingHome::new();
    let program = copy_program(home.folder());
    run_copy(&home, &program, &["enqueue", "--id", "a", "--", "sh", "-c", UNTIL_GO]);
    run_copy(&home, &program, &["worker", "start"]);
    home.wait_for_state("a", "processing");
    assert!(problems(&home).is_empty());
    let newer = home.folder().join("newer");
    fs::create_dir(&newer).expect("a folder");
    fs::rename(copy_program(&newer), &program).expect("the program is replaced");
    assert_eq!(problems(&home), ["replaced_program"]);
    home.run(["status"]).ok().shows(&format!("because {} was replaced", program.display()));
    home.go();
    home.wait_for_state("a", "completed");
    run_copy(&home, &program, &["worker", "stop"]);
    run_copy(&home, &program, &["worker", "start"]);
    assert!(problems(&home).is_empty());
    run_copy(&home, &program, &["worker", "stop"]);
}
