//! `queuectl prune`, pruning by workers, and the deletion of log files with their jobs.

use std::fs;

use crate::cli::harness::Home;
use crate::cli::harness::working_home::{WorkingHome, wait_until};

/// A command whose output is long enough for a log file.
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
fn finished_jobs_are_deleted_by_state_and_age() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["enqueue", "-q", "--id", "waits", "--", "true"]).ok();
    home.run(["prune"]).ok().prints("0\n");
    home.run(["prune", "--older-than", "1h"]).ok().prints("0\n");
    home.run(["prune", "--state", "completed"]).fails(2).says("this would delete 2 jobs").says("--yes");
    home.run(["prune", "--state", "completed", "--dry-run"]).ok().prints("2\n");
    assert_eq!(home.count(), 3);
    let json = home.run(["prune", "--state", "completed,dead", "--yes", "--json"]).ok().json();
    assert_eq!((json["jobs"].as_u64(), json["dry_run"].as_bool()), (Some(2), Some(false)));
    assert_eq!(home.state_of("waits"), "pending");
    home.run(["prune", "--state", "pending"]).fails(2).says("the states are completed, cancelled, dead");
    home.run(["prune", "--state", "complete"]).fails(2).says("did you mean `completed`?");
}

#[test]
fn selected_finished_jobs_are_deleted() {
    let home = Home::new();
    for (id, queue, tag) in [("a", "mail", "t"), ("b", "mail", "u"), ("c", "film", "t"), ("d", "film", "u")] {
        home.run([
            "enqueue", "-q", "--id", id, "--queue", queue, "--tags", tag, "--batch", id, "--", "echo", id,
        ])
        .ok();
    }
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["prune", "--tag", "t"]).fails(2).says("this would delete 2 jobs").says("--yes");
    home.run(["prune", "--tag", "t", "--queue", "mail", "--dry-run"]).ok().prints("1\n");
    home.run(["prune", "--queue", "mial"]).ok().prints("0\n").says("did you mean `mail`?");
    home.run(["prune", "--command-like", "echo d"]).ok().prints("1\n");
    home.run(["prune", "--batch", "c"]).ok().prints("1\n");
    assert_eq!(home.count(), 2);
    home.run(["enqueue", "-q", "--id", "waits", "--", "true"]).ok();
    home.run(["prune", "a", "absent", "waits", "--yes"])
        .fails(4)
        .prints("1\n")
        .says("there is no job `absent`");
    home.run(["prune", "b", "--tag", "u"]).fails(2).says("ids cannot be combined with a selection");
    assert_eq!((&*home.state_of("b"), &*home.state_of("waits")), ("completed", "pending"));
}

#[test]
fn a_job_that_holds_its_unique_key_is_kept() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--unique-key", "k", "--unique-for", "1h", "--", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["prune", "--state", "completed", "--dry-run"]).ok().prints("0\n");
    home.run(["prune", "a"]).ok().prints("0\n").says("it holds a unique key");
    home.run(["config", "set", "retain_completed", "0"]).ok();
    home.run(["prune"]).ok().prints("0\n");
    home.run(["enqueue", "--unique-key", "k", "--", "true"]).ok().prints("a\n");
    home.run(["remove", "-q", "a"]).ok();
    assert_eq!(home.count(), 0);
}

#[test]
fn removing_selected_jobs_deletes_their_logs() {
    let home = home_with_logs(&["a", "b", "c"]);
    home.run(["enqueue", "-q", "--id", "kept", "--queue", "other", "--command", LONG_OUTPUT]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["remove", "-q", "--command-like", "*3000; exit 1", "--dry-run"]).ok();
    assert_eq!(log_files(&home), 4);
    home.run(["remove", "-q", "--queue", "default", "--yes"]).ok();
    assert_eq!((log_files(&home), home.count()), (1, 1));
    home.run(["logs", "kept"]).ok();
}

#[test]
fn pruning_jobs_deletes_their_logs() {
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
fn logs_have_their_own_retention_and_orphaned_logs_are_deleted() {
    let home = home_with_logs(&["a"]);
    fs::write(home.path().join("logs/4711-1.log"), "of no job").expect("a file");
    fs::write(home.path().join("logs/notes.txt"), "of another program").expect("a file");
    home.run(["prune", "-q"]).ok();
    assert_eq!(log_files(&home), 2, "that of the job is too new to go");
    home.run(["config", "set", "retain_logs", "0"]).ok();
    home.run(["prune", "-q"]).ok();
    assert_eq!(log_files(&home), 1, "files that are not logs are kept");
    assert_eq!(home.state_of("a"), "dead");
    home.run(["logs", "a"]).fails(3);
}

#[test]
fn workers_prune_by_themselves_and_record_it() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["config", "set", "retain_completed", "0"]).ok();
    home.run(["worker", "start", "-q", "--count", "2"]).ok();
    wait_until("the job is deleted", || home.is_empty());
}
