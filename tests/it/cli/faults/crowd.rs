//! Fault 30: many processes at once. No process fails, and every count is right.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::job::outcome::Outcome;
use rusqlite::Connection;

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

/// Starts this many processes as fast as possible, each with its own job, and asserts that all succeed.
fn enqueue_at_once(home: &Home, names: impl Iterator<Item = String>) {
    let children: Vec<Child> =
        names.map(|id| home.call(["enqueue", "--id", &id, "--", "true"]).spawn()).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
    }
}

#[test]
fn fault_30_twenty_processes_on_a_new_home_create_one_queue() {
    for round in 0..6 {
        let home = Home::new();
        enqueue_at_once(&home, (0..20).map(|at| format!("j{at}")));
        assert_eq!(home.count(), 20, "round {round}");
    }
}

#[test]
fn fault_30_many_processes_with_one_unique_key_create_one_job() {
    for unique_for in ["started", "finished", "1h"] {
        let home = Home::new();
        let args = ["enqueue", "--unique-key", "k", "--unique-for", unique_for, "--", "true"];
        let children: Vec<Child> = (0..20).map(|_| home.call(args).spawn()).collect();
        let mut answers = Vec::new();
        for child in children {
            let output = child.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            answers.push(output.stdout);
        }
        answers.dedup();
        assert_eq!((answers.len(), home.count()), (1, 1), "{unique_for}");
    }
}

#[test]
fn fault_30_fifty_processes_enqueue_while_others_claim() {
    const ROUNDS: usize = 3;
    const WORKERS: usize = 4;
    let home = Home::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let worker = TestWorker::new(&home, &format!("w{number}"));
            let over = &over;
            scope.spawn(move || work_until(over, &worker));
        }
        for round in 0..ROUNDS {
            enqueue_at_once(&home, (0..50).map(|at| format!("j{round}.{at}")));
        }
        over.store(true, Ordering::SeqCst);
    });
    let states: Vec<String> = home.jobs().iter().map(|job| job.life.state.name().name().to_owned()).collect();
    assert_eq!(states, vec!["completed"; ROUNDS * 50]);
    assert_counters_equal_a_recount(&home);
}

/// Claims and settles until it is over and nothing is left.
fn work_until(over: &AtomicBool, worker: &TestWorker) {
    loop {
        let last = over.load(Ordering::SeqCst);
        let claimed = worker.claim(3);
        if claimed.is_empty() && last {
            return;
        }
        for claim in claimed {
            worker.settle(claim.lease, Outcome::Success, None);
        }
    }
}

fn assert_counters_equal_a_recount(home: &Home) {
    let connection = Connection::open(home.database()).expect("the database opens");
    let rows = |sql: &str| -> Vec<(i64, String, i64)> {
        let mut select = connection.prepare(sql).expect("the statement is right");
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("it runs");
        rows.map(|row| row.expect("a row")).collect()
    };
    let counted = rows("select queue_id, state, count from counters where count <> 0 order by 1, 2");
    let recounted = rows("select queue_id, state, count(*) from jobs group by 1, 2 order by 1, 2");
    assert_eq!(counted, recounted);
}
