//! Workers whose program is replaced while they run, as a package manager does it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cli::harness::copy_program;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome};

/// The problems of the queue, by name.
fn problems(home: &WorkingHome) -> Vec<String> {
    let status = home.run(["status", "--json"]).ok().json();
    let problems = status["problems"].as_array().expect("an array").iter();
    problems.map(|problem: &Value| problem["problem"].as_str().expect("a name").to_owned()).collect()
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
