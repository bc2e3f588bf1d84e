//! `queuectl prune`, what workers forget by themselves, and log files that go with their jobs.

use std::fs;

use super::harness::Home;
use super::working_home::{WorkingHome, wait_until};

/// Makes a log file.
const LONG_OUTPUT: &str = "sleep 0.6; seq 1 3000";

fn home_with_logs(ids: &[&str]) -> Home {
    let home = Home::new();
    for id in ids {
        home.run([
            "enqueue",
            "-q",
            "--max-retries",
            "0",
            "--id",
            id,
            "--command",
            &format!("{LONG_OUTPUT}; exit 1"),
        ])
        .ok();
    }
    home.run(["worker", "run", "-q", "--until-empty", "--concurrency", "8"]).ok();
    assert_eq!(log_files(&home), ids.len());
    home
}

fn log_files(home: &Home) -> usize {
    fs::read_dir(home.path().join("logs")).map_or(0, Iterator::count)
}

#[test]
fn finished_jobs_are_forgotten_by_state_and_age() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "waits", "--", "true"]).ok();
    home.run(["prune"]).ok().prints("0\n");
    home.run(["prune", "--older-than", "1h"]).ok().prints("0\n");
    home.run(["prune", "--state", "completed"]).fails(2).says("this would forget 2 jobs").says("--yes");
    home.run(["prune", "--state", "completed", "--dry-run"]).ok().prints("2\n");
    assert_eq!(home.count(), 3);
    let json = home.run(["prune", "--state", "completed,dead", "--yes", "--json"]).ok().json();
    assert_eq!((json["jobs"].as_u64(), json["dry_run"].as_bool()), (Some(2), Some(false)));
    assert_eq!(home.state_of("waits"), "pending");
    home.run(["prune", "--state", "pending"]).fails(2).says("only finished jobs");
    home.run(["prune", "--state", "complete"]).fails(2).says("did you mean `completed`?");
}

#[test]
fn logs_go_with_their_jobs() {
    let home = home_with_logs(&["a", "b", "c", "d"]);
    home.run(["remove", "-q", "a"]).ok();
    assert_eq!(log_files(&home), 3);
    home.run(["prune", "-q", "--state", "dead", "--older-than", "1h"]).ok();
    home.run(["dlq", "purge", "-q", "b"]).ok();
    assert_eq!(log_files(&home), 2);
    home.run(["dlq", "purge", "--all", "-q", "--yes"]).ok();
    assert_eq!((log_files(&home), home.count()), (0, 0));
}

#[test]
fn logs_have_a_time_of_their_own_and_orphans_go() {
    let home = home_with_logs(&["a"]);
    fs::write(home.path().join("logs/4711-1.log"), "of nobody").expect("a file");
    fs::write(home.path().join("logs/notes.txt"), "of somebody else").expect("a file");
    home.run(["prune", "-q"]).ok();
    assert_eq!(log_files(&home), 2, "that of the job is too new to go");
    home.run(["config", "set", "retain_logs", "0"]).ok();
    home.run(["prune", "-q"]).ok();
    assert_eq!(log_files(&home), 1, "what is no log file is left alone");
    assert_eq!(home.state_of("a"), "dead");
    home.run(["logs", "a"]).fails(3);
}

#[test]
fn workers_forget_what_is_old_by_themselves_and_say_so() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["config", "set", "retain_completed", "0"]).ok();
    home.run(["worker", "start", "-q", "--count", "2"]).ok();
    wait_until("it is forgotten", || home.is_empty());
}
