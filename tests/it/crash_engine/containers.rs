//! FAULTS 38: one home that is used from two containers, under two paths, or twice because it was copied.
//!
//! A container here is created by `unshare`: it has its own mount and pid namespaces. That requires root; the tests
//! that need it are skipped without it.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use super::harness::{CrashHome, Pool};
use super::processes::{kill, kill_all, stop_for, wait};
use crate::cli::harness::PROGRAM;

/// How long to wait: several times the lease of these tests.
const LEASES: std::time::Duration = std::time::Duration::from_secs(4);

/// `None` if containers cannot be created.
fn crash_home() -> Option<CrashHome> {
    let can = Command::new("unshare").args(["-m", "-p", "-f", "--mount-proc", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: creating a container requires root");
        return None;
    }
    Some(CrashHome::with_short_leases())
}

/// A worker in its own mount and pid namespaces, which sees the home under another path.
fn container(crash_home: &CrashHome, setup: &str) -> Pool {
    let home = crash_home.home.folder().join("elsewhere");
    fs::create_dir_all(&home).expect("a folder to mount the home on");
    let mut command = Command::new("unshare");
    command.args(["-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-e", "-c"]);
    command.arg(format!("{setup}\nexec \"$0\" worker run")).arg(PROGRAM);
    command.current_dir(crash_home.home.folder()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("QUEUECTL_HOME", &home).env("REAL_HOME", crash_home.home.path());
    let before = crash_home.workers().len();
    let pool = crash_home.spawn_pool(command);
    wait("the container is up", || crash_home.workers().len() == before + 1);
    pool
}

const MOUNTED_ELSEWHERE: &str = r#"mount --bind "$REAL_HOME" "$QUEUECTL_HOME""#;
const ANOTHER_BOOT: &str = r#"mount --bind "$REAL_HOME" "$QUEUECTL_HOME"
cat /proc/sys/kernel/random/uuid > boot-id
mount --bind boot-id /proc/sys/kernel/random/boot_id"#;

fn problems(crash_home: &CrashHome) -> Vec<Value> {
    let status = crash_home.run(&["status", "--json"]).ok().json();
    status["problems"].as_array().expect("a list").clone()
}

/// Runs a job of 4 s, so that the workers have time to judge each other.
fn let_time_pass(crash_home: &CrashHome) {
    crash_home.job("time", "sleep 4");
    wait("time passes", || crash_home.story_of_started("time") == "completed: success");
}

/// Waits for all jobs and stops all workers; those in containers are stopped through the store.
fn end(crash_home: &CrashHome) {
    wait("every job has ended", || crash_home.unfinished().is_empty());
    crash_home.run(&["-q", "worker", "stop"]).ok();
    crash_home.wait_for_pools();
    crash_home.finish();
}

fn neither_takes_the_other_for_dead(setup: &str) {
    let Some(crash_home) = crash_home() else {
        return;
    };
    crash_home.job("a", "until_there go");
    crash_home.pool();
    crash_home.runs("a", 1, &[]);
    container(&crash_home, setup);
    let problem = problems(&crash_home).into_iter().find(|problem| problem["problem"] == "shared_home");
    let said = problem.expect("status says that the home is shared")["message"].to_string();
    assert!(said.contains("another container or machine shares this home"), "{said}");
    let_time_pass(&crash_home);
    assert_eq!(crash_home.story("a"), "processing: running");
    crash_home.put("go");
    end(&crash_home);
    assert_eq!(crash_home.story("a"), "completed: success");
    assert!(!crash_home.journal().contains("it held"), "{}", crash_home.journal());
}

#[test]
fn fault_38_workers_in_two_pid_namespaces_and_mount_paths_leave_each_other_alone() {
    neither_takes_the_other_for_dead(MOUNTED_ELSEWHERE);
}

#[test]
fn fault_38_workers_with_two_boot_ids_leave_each_other_alone() {
    neither_takes_the_other_for_dead(ANOTHER_BOOT);
}

#[test]
fn fault_38_a_container_that_dies_is_recovered_after_its_lease() {
    for setup in [MOUNTED_ELSEWHERE, ANOTHER_BOOT] {
        let Some(crash_home) = crash_home() else {
            return;
        };
        crash_home.job("a", "first && hang");
        let gone = container(&crash_home, setup);
        crash_home.runs("a", 1, &[]);
        crash_home.pool();
        kill(gone.supervisor, Signal::KILL);
        crash_home.loses("a", 1);
        end(&crash_home);
        assert_eq!(crash_home.story("a"), "completed: lost success");
    }
}

#[test]
fn fault_38_a_frozen_container_keeps_its_jobs() {
    let Some(crash_home) = crash_home() else {
        return;
    };
    crash_home.job("a", "until_there go");
    let before = crash_home.living_processes();
    container(&crash_home, MOUNTED_ELSEWHERE);
    crash_home.runs("a", 1, &[]);
    let frozen: Vec<_> =
        crash_home.living_processes().into_iter().filter(|pid| !before.contains(pid)).collect();
    kill_all(&frozen, Signal::STOP);
    crash_home.pool();
    stop_for(LEASES, &frozen);
    assert_eq!(crash_home.story("a"), "processing: running", "its command may continue at any moment");
    crash_home.put("go");
    end(&crash_home);
    assert_eq!(crash_home.story("a"), "completed: success");
}

#[test]
fn fault_38_a_renamed_home_loses_nothing() {
    let crash_home = CrashHome::with_short_leases();
    crash_home.job("a", "until_there go");
    let first = crash_home.pool();
    crash_home.runs("a", 1, &[]);
    let there = crash_home.home.folder().join("renamed");
    fs::rename(crash_home.home.path(), &there).expect("renamed");
    let run = |args: &[&str]| crash_home.call(args).env("QUEUECTL_HOME", &there).run();
    run(&["worker", "start"]).ok();
    run(&["run", "--", "sleep", "3"]).ok();
    let story = |wanted: &str| run(&["show", "a", "--json"]).ok().json()["state"] == wanted;
    assert!(story("processing"), "it still runs");
    crash_home.put("go");
    wait("the job is recorded", || story("completed"));
    assert!(crash_home.ending_of(first).success(), "its worker ends when it has finished");
    run(&["worker", "stop"]).ok();
    let history = run(&["show", "a", "--json"]).ok().json()["history"].as_array().expect("a list").len();
    assert_eq!(history, 1);
    crash_home.wait_until_no_process_is_left();
}

#[test]
fn fault_38_a_worker_of_a_copied_home_kills_nothing_of_the_original() {
    let crash_home = CrashHome::with_short_leases();
    crash_home.job("a", "until_there go");
    crash_home.pool();
    crash_home.runs("a", 1, &[]);
    let copy = crash_home.home.folder().join("copy");
    copy_home(&crash_home.home.path(), &copy);
    let run = |args: &[&str]| crash_home.call(args).env("QUEUECTL_HOME", &copy).run();
    // Change the job in the copy, so that it does not write into the same ledger.
    run(&["edit", "a", "--set-command", "true"]);
    run(&["run", "--", "sleep", "3"]).ok();
    assert!(crash_home.has_shell("a", 1), "the original still runs");
    crash_home.put("go");
    crash_home.finish();
    assert_eq!(crash_home.story("a"), "completed: success");
}

fn copy_home(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
    assert!(copied.success());
}
