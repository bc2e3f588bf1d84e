//! A disk that is really full.

use std::fs;
use std::process::{Child, ExitStatus, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use super::small_disk::SmallDisk;
use crate::cli::harness::ids;
use crate::crash_engine::processes::{kill, pid, wait};

/// Waits until the condition holds for the output of `list --json`.
fn wait_for_jobs(disk: &SmallDisk, what: &str, condition: impl Fn(&Value) -> bool) {
    wait(what, || {
        let ran = disk.call(&["list", "--json"]).run();
        ran.status.success() && condition(&ran.json())
    });
}

fn are_all(jobs: &Value, state: &str) -> bool {
    jobs.as_array().expect("a list").iter().all(|job| job["state"] == state)
}

/// The call succeeds, or fails with the reason.
fn answers(disk: &SmallDisk, args: &[&str]) {
    let ran = disk.call(args).run();
    if ran.status.success() {
        ran.ok();
    } else {
        ran.fails(5).says("the disk is full");
    }
}

fn has_low_space(disk: &SmallDisk) -> bool {
    let status = disk.call(&["status", "--json"]).run().ok().json();
    status["problems"].as_array().expect("a list").iter().any(|problem| problem["problem"] == "low_space")
}

#[test]
fn fault_29_jobs_are_enqueued_until_the_disk_is_full() {
    let disk = SmallDisk::new();
    disk.call(&["enqueue", "-q", "--id", "first", "--", "true"]).run().ok();
    disk.fill_nearly();
    let long = format!(": {}", "x".repeat(60_000));
    let mut stored = vec!["first".to_owned()];
    loop {
        disk.has_taken(stored.len());
        let id = format!("j{}", stored.len());
        let ran = disk.call(&["enqueue", "--id", &id, "--command", &long]).run();
        if !ran.status.success() {
            ran.fails(5).prints("").says("the disk is full").says("hint: ");
            break;
        }
        assert_eq!(ran.stdout, format!("{id}\n"));
        stored.push(id);
        assert!(stored.len() < 100, "the disk never fills up");
    }
    println!("{} jobs were stored", stored.len());
    for args in [&["list"][..], &["list", "--json"], &["status"], &["show", "first"]] {
        answers(&disk, args);
    }
    disk.fill();
    for args in [&["list"][..], &["status"], &["show", "first"]] {
        answers(&disk, args);
    }
    answers(&disk, &["cancel", "first"]);

    disk.empty();
    let listed = disk.call(&["list", "--json", "--limit", "1000"]).run().ok().json();
    let mut listed: Vec<&str> = ids(&listed);
    listed.reverse();
    assert_eq!(listed, stored, "exactly the acknowledged jobs");
    disk.call(&["enqueue", "--id", "later", "--command", &long]).run().ok().prints("later\n");
    if disk.is_real() {
        assert!(has_low_space(&disk), "a disk of 2 MiB is nearly full");
    }
}

#[test]
fn fault_29_the_first_enqueue_on_a_full_disk_is_refused() {
    let disk = SmallDisk::new();
    disk.fill();
    let enqueue = || disk.call(&["enqueue", "--id", "a", "--", "true"]).run();
    enqueue().fails(5).prints("");
    enqueue().fails(5).prints("");
    disk.empty();
    enqueue().ok().prints("a\n");
    assert_eq!(ids(&disk.call(&["list", "--json"]).run().ok().json()), ["a"]);
}

/// A supervisor that is killed on drop, even if the test fails.
struct Supervisor(Child);

impl Supervisor {
    fn ending(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("a child process")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if self.ending().is_none() {
            kill(pid(self.0.id()), Signal::QUIT);
        }
    }
}

fn start_pool(disk: &SmallDisk, args: &[&str]) -> Supervisor {
    let args: Vec<&str> = ["worker", "run"].into_iter().chain(args.iter().copied()).collect();
    let log = fs::File::create(disk.home.folder().join("pool.log")).expect("a log");
    let mut command = disk.call(&args).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    Supervisor(command.spawn().expect("the program starts"))
}

fn said(disk: &SmallDisk) -> String {
    fs::read_to_string(disk.home.folder().join("pool.log")).expect("a log")
}

#[test]
fn fault_29_a_worker_drains_on_a_full_disk() {
    let disk = SmallDisk::new();
    for id in ["a", "b", "c"] {
        // The output is too long to be stored with the attempt.
        let script = format!(
            "echo START {id} >> ledger; for _ in $(seq 1500); do [ -e go ] && break; sleep 0.02; done; head -c 300000 /dev/zero; echo END {id} >> ledger"
        );
        disk.call(&["enqueue", "-q", "--id", id, "--max-retries", "0", "--command", &script]).run().ok();
    }
    let mut supervisor = start_pool(&disk, &["--concurrency", "2"]);
    let ledger = || fs::read_to_string(disk.home.folder().join("ledger")).unwrap_or_default();
    wait("two jobs run", || ledger().lines().count() == 2);
    disk.fill();
    disk.home.file("go", "");
    wait("both have ended", || ledger().contains("END a") && ledger().contains("END b"));
    // A write-ahead log that was reset needs no new space.
    let is_recorded = || {
        let ran = disk.call(&["list", "--json", "--state", "completed"]).run();
        ran.status.success() && ids(&ran.json()).len() >= 2
    };
    wait("the worker reports the full disk, or found space", || {
        said(&disk).contains("the disk is full") || is_recorded()
    });
    let waits = said(&disk).contains("the disk is full");
    println!("the worker has to wait: {waits}");
    answers(&disk, &["status"]);
    answers(&disk, &["worker", "list"]);
    kill(pid(supervisor.0.id()), Signal::TERM);
    wait("the worker drains", || said(&disk).contains("stop requested"));
    assert!(
        supervisor.ending().is_none() || !waits,
        "the worker must not exit before its results are recorded"
    );
    disk.empty();
    let mut ended = None;
    wait("the supervisor exits", || {
        ended = supervisor.ending();
        ended.is_some()
    });
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", said(&disk));
    for id in ["a", "b"] {
        let job = disk.call(&["show", id, "--json"]).run().ok().json();
        assert_eq!((&job["state"], &job["attempts"]), (&"completed".into(), &1.into()), "{job}");
    }
    let mut last = start_pool(&disk, &["--until-empty"]);
    wait_for_jobs(&disk, "all are completed", |jobs| are_all(jobs, "completed"));
    assert!(last.0.wait().expect("a child").success());
    let mut lines: Vec<String> = ledger().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["END a", "END b", "END c", "START a", "START b", "START c"], "each ran once");
}

#[test]
fn fault_29_a_worker_started_on_a_full_disk_reports_the_reason() {
    let disk = SmallDisk::new();
    disk.call(&["enqueue", "-q", "--id", "a", "--", "true"]).run().ok();
    disk.fill();
    let ran = disk.call(&["worker", "run", "--until-empty"]).run();
    assert_ne!(ran.status.code(), Some(0), "{ran}");
    println!("{ran}");
    assert!(ran.stderr.contains("full") || ran.stderr.contains("No space left"), "{ran}");
    disk.empty();
    disk.call(&["worker", "run", "--until-empty"]).run().ok();
    wait_for_jobs(&disk, "the job is completed", |jobs| are_all(jobs, "completed"));
}
