//! Many jobs and many slots: each job runs once, never too many at a time, and one slot runs them in exact order.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::job::life::StateName;
use serde_json::json;
use store::{JobFilter, Page, Phase};

use crate::cli::harness::ids;
use crate::engine::harness::{Home, Pool, wait_until};

/// Writes a line when it starts and when it ends, with one call each, so that lines never interleave.
const LEDGER: &str = "echo START $QUEUECTL_JOB_ID >> ledger; sleep 0.02; echo END $QUEUECTL_JOB_ID >> ledger";

/// How often each job started and ended, and the maximum number that ran at once.
fn read_ledger(home: &Home) -> (BTreeMap<String, (u32, u32)>, u32) {
    let (mut jobs, mut running, mut most) = (BTreeMap::<String, (u32, u32)>::new(), 0_u32, 0);
    for line in home.read("ledger").lines() {
        let (what, id) = line.split_once(' ').expect("two words");
        let counts = jobs.entry(id.to_owned()).or_default();
        if what == "START" {
            counts.0 += 1;
            running += 1;
        } else {
            counts.1 += 1;
            running -= 1;
        }
        most = most.max(running);
    }
    (jobs, most)
}

#[test]
fn each_of_many_jobs_runs_once_and_never_more_at_a_time_than_slots() {
    const JOBS: usize = 200;
    let home = Home::new();
    let mut lines = String::new();
    for number in 0..JOBS {
        let _ = writeln!(lines, r#"{{"id":"job-{number}","command":"{LEDGER}","max_retries":0}}"#);
    }
    home.call(["enqueue", "-q", "-"]).with_stdin(lines).run().ok();
    Pool::drain(&home, "--count 4 --concurrency 4");
    let (jobs, most) = read_ledger(&home);
    assert_eq!(jobs.len(), JOBS);
    assert!(jobs.values().all(|counts| *counts == (1, 1)), "{jobs:?}");
    assert!((2..=16).contains(&most), "{most} ran at once");
    for job in home.jobs() {
        assert_eq!((job.life.state.name().name(), job.life.attempts), ("completed", 1), "{}", job.id);
    }
}

#[test]
fn one_slot_takes_jobs_by_priority_then_due_time_then_enqueue_order() {
    let home = Home::new();
    // In one call, so that all have the same creation time.
    let jobs = [
        json!({"id": "late", "delay": "0.2s"}),
        json!({"id": "soon", "delay": "0.1s"}),
        json!({"id": "plain-1"}),
        json!({"id": "low", "priority": -3}),
        json!({"id": "high", "priority": 5}),
        json!({"id": "plain-2", "priority": 0}),
        json!({"id": "high-soon", "priority": 5, "delay": "0.1s"}),
        json!({"id": "highest", "priority": 100}),
    ];
    let jobs = jobs.map(|mut job| {
        job["command"] = json!("echo $QUEUECTL_JOB_ID >> order");
        job
    });
    home.run(["enqueue", "-q", &json!(jobs).to_string()]).ok();
    wait_until("all are ready", || {
        ids(&home.run(["list", "--state", "ready", "--json"]).ok().json()).len() == 8
    });
    Pool::drain(&home, "--concurrency 1");
    let order = home.read("order");
    let expected = ["highest", "high", "high-soon", "plain-1", "plain-2", "soon", "late", "low"];
    assert_eq!(order.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn fault_30_fifty_processes_enqueue_while_sixteen_workers_drain() {
    const ROUNDS: usize = 3;
    const PROCESSES: usize = 50;
    let home = Home::new();
    let _pool = Pool::run(&home, "--count 16");
    for round in 0..ROUNDS {
        let call = |at: usize| {
            home.call(["enqueue", "--id", &format!("j{round}.{at}"), "--max-retries=0", "--command", LEDGER])
        };
        let children: Vec<_> = (0..PROCESSES).map(|at| call(at).spawn()).collect();
        for (at, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("j{round}.{at}\n"));
        }
    }
    let store = home.store();
    wait_until("all are done", || {
        let done = JobFilter::in_phase(Phase::State(StateName::Completed));
        let page = Page { limit: usize::MAX, after: None };
        store.list(&done, &page).expect("they are listed").len() == ROUNDS * PROCESSES
    });
    let (jobs, most) = read_ledger(&home);
    assert!(jobs.len() == ROUNDS * PROCESSES && jobs.values().all(|counts| *counts == (1, 1)), "{jobs:?}");
    assert!(most <= 16, "{most} ran at once");
    let said = home.journal() + &home.read("said");
    assert!(!said.contains("locked") && !said.contains("crashed"), "{said}");
    assert_eq!(home.workers().len(), 16, "none was replaced");
}
