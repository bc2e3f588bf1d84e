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
fn ground() -> Option<CrashHome> {
    let can = Command::new("unshare").args(["-m", "-p", "-f", "--mount-proc", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        println!("skipped: creating a container requires root");
        return None;
    }
    Some(CrashHome::with_short_leases())
}

/// A worker in its own mount and pid namespaces, which sees the home under another path.
fn container(ground: &CrashHome, setup: &str) -> Pool {
    let home = ground.home.folder().join("elsewhere");
    fs::create_dir_all(&home).expect("a folder to mount the home on");
    let mut command = Command::new("unshare");
    command.args(["-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-e", "-c"]);
    command.arg(format!("{setup}\nexec \"$0\" worker run")).arg(PROGRAM);
    command.current_dir(ground.home.folder()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("QUEUECTL_HOME", &home).env("REAL_HOME", ground.home.path());
    let before = ground.workers().len();
    let pool = ground.spawn_pool(command);
    wait("the container is up", || ground.workers().len() == before + 1);
    pool
}

const MOUNTED_ELSEWHERE: &str = r#"mount --bind "$REAL_HOME" "$QUEUECTL_HOME""#;
const ANOTHER_BOOT: &str = r#"mount --bind "$REAL_HOME" "$QUEUECTL_HOME"
cat /proc/sys/kernel/random/uuid > boot-id
mount --bind boot-id /proc/sys/kernel/random/boot_id"#;

fn problems(ground: &CrashHome) -> Vec<Value> {
    let status = ground.run(&["status", "--json"]).ok().json();
    status["problems"].as_array().expect("a list").clone()
}

/// Runs a job of 4 s, so that the workers have time to judge each other.
fn let_time_pass(ground: &CrashHome) {
    ground.job("time", "sleep 4");
    wait("time passes", || ground.story_of_started("time") == "completed: success");
}

/// Waits for all jobs and stops all workers; those in containers are stopped through the store.
fn end(ground: &CrashHome) {
    wait("every job has ended", || ground.unfinished().is_empty());
    ground.run(&["-q", "worker", "stop"]).ok();
    ground.finish();
}

fn neither_takes_the_other_for_dead(setup: &str) {
    let Some(ground) = ground() else {
        return;
    };
    ground.job("a", "until_there go");
    ground.pool();
    ground.runs("a", 1, &[]);
    container(&ground, setup);
    let problem = problems(&ground).into_iter().find(|problem| problem["problem"] == "shared_home");
    let said = problem.expect("status says that the home is shared")["message"].to_string();
    assert!(said.contains("another container or machine shares this home"), "{said}");
    let_time_pass(&ground);
    assert_eq!(ground.story("a"), "processing: running");
    ground.put("go");
    end(&ground);
    assert_eq!(ground.story("a"), "completed: success");
    assert!(!ground.journal().contains("it held"), "{}", ground.journal());
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
        let Some(ground) = ground() else {
            return;
        };
        ground.job("a", "first && hang");
        let gone = container(&ground, setup);
        ground.runs("a", 1, &[]);
        ground.pool();
        kill(gone.supervisor, Signal::KILL);
        ground.loses("a", 1);
        end(&ground);
        assert_eq!(ground.story("a"), "completed: lost success");
    }
}

#[test]
fn fault_38_a_frozen_container_keeps_its_jobs() {
    let Some(ground) = ground() else {
        return;
    };
    ground.job("a", "until_there go");
    let before = ground.living_processes();
    container(&ground, MOUNTED_ELSEWHERE);
    ground.runs("a", 1, &[]);
    let frozen: Vec<_> = ground.living_processes().into_iter().filter(|pid| !before.contains(pid)).collect();
    kill_all(&frozen, Signal::STOP);
    ground.pool();
    stop_for(LEASES, &frozen);
    assert_eq!(ground.story("a"), "processing: running", "its command may continue at any moment");
    ground.put("go");
    end(&ground);
    assert_eq!(ground.story("a"), "completed: success");
}

#[test]
fn fault_38_a_renamed_home_loses_nothing() {
    let ground = CrashHome::with_short_leases();
    ground.job("a", "until_there go");
    let first = ground.pool();
    ground.runs("a", 1, &[]);
    let there = ground.home.folder().join("renamed");
    fs::rename(ground.home.path(), &there).expect("renamed");
    let run = |args: &[&str]| ground.call(args).env("QUEUECTL_HOME", &there).run();
    run(&["worker", "start"]).ok();
    run(&["run", "--", "sleep", "3"]).ok();
    let story = |wanted: &str| run(&["show", "a", "--json"]).ok().json()["state"] == wanted;
    assert!(story("processing"), "it still runs");
    ground.put("go");
    wait("the job is recorded", || story("completed"));
    assert!(ground.ending_of(first).success(), "its worker ends when it has finished");
    run(&["worker", "stop"]).ok();
    let history = run(&["show", "a", "--json"]).ok().json()["history"].as_array().expect("a list").len();
    assert_eq!(history, 1);
    ground.wait_until_no_process_is_left();
}

#[test]
fn fault_38_a_worker_of_a_copied_home_kills_nothing_of_the_original() {
    let ground = CrashHome::with_short_leases();
    ground.job("a", "until_there go");
    ground.pool();
    ground.runs("a", 1, &[]);
    let copy = ground.home.folder().join("copy");
    copy_home(&ground.home.path(), &copy);
    let run = |args: &[&str]| ground.call(args).env("QUEUECTL_HOME", &copy).run();
    // Change the job in the copy, so that it does not write into the same ledger.
    run(&["edit", "a", "--set-command", "true"]);
    run(&["run", "--", "sleep", "3"]).ok();
    assert!(ground.has_shell("a", 1), "the original still runs");
    ground.put("go");
    ground.finish();
    assert_eq!(ground.story("a"), "completed: success");
}

fn copy_home(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs");
    assert!(copied.success());
}
