use std::fs;
use std::time::Duration;

use domain::job::outcome::Outcome;
use rusqlite::Connection;
use serde_json::json;
use store::{NewWorker, ServedJobs};
use sys::host::Origin;

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

/// A worker on another machine that holds the next job, with a heartbeat of this age.
fn elsewhere(home: &Home, name: &str, heard: Duration) {
    let store = home.store();
    let worker = NewWorker {
        id: name.parse().expect("a worker id"),
        host: "elsewhere".to_owned(),
        origin: Origin::default(),
        pid: 4242,
        supervisor_pid: Some(4241),
        served: ServedJobs::All,
        concurrency: 1,
        folder: "/nowhere/workers".into(),
        stop_seen: None,
    };
    store.register(&worker).expect("it registers");
    let exchange = store::Exchange { worker: &worker.id, settlements: &[], want: 1, want_limited: 1 };
    assert_eq!(store.exchange(&exchange).expect("it claims").claimed.len(), 1);
    home.silence(name, heard);
}

#[test]
fn jobs_of_a_gone_worker_are_released_as_lost() {
    let home = Home::with_jobs(&["a", "b"]);
    elsewhere(&home, "w1", Duration::from_secs(60));
    let ran = home.run(["worker", "forget", "w1"]).ok().prints("a\n");
    assert_eq!(ran.stderr, "Worker w1 removed, 1 job released\n");
    let job = home.show("a");
    assert_eq!((&job["state"], &job["history"][0]["outcome"]), (&json!("pending"), &json!("lost")));
    home.run(["worker", "forget", "w1"]).fails(3).says("there is no worker `w1`");
    home.run(["events", "--json"]).ok().shows("\"event\":\"worker_forget\"");
}

#[test]
fn json_is_an_object() {
    let home = Home::with_jobs(&["a"]);
    elsewhere(&home, "w1", Duration::from_secs(60));
    let output = home.run(["worker", "forget", "w1", "--json"]).ok().says_nothing().json();
    assert_eq!(output, json!({"worker": "w1", "jobs": ["a"]}));
}

#[test]
fn a_live_worker_is_refused() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    let lease = worker.claim_job("a");
    home.run(["worker", "forget", "w1"])
        .fails(4)
        .says("worker `w1` is still running")
        .says("queuectl worker stop");
    assert_eq!(home.state_of("a"), "processing");
    worker.settle(lease, Outcome::Success, None);
    assert_eq!(home.state_of("a"), "completed", "its lease is its own");
}

#[test]
fn a_worker_with_a_recent_heartbeat_is_refused() {
    let home = Home::with_jobs(&["a"]);
    elsewhere(&home, "w1", Duration::from_secs(3));
    home.run(["worker", "forget", "w1"]).fails(4).says("worker `w1` is still running");
    assert_eq!(home.state_of("a"), "processing");
}

#[test]
fn a_worker_that_died_on_this_machine_is_removed() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    drop(worker);
    home.run(["worker", "forget", "w1"]).ok().prints("a\n");
    assert_eq!(home.state_of("a"), "pending");
}

#[test]
fn a_worker_of_an_earlier_boot_is_removed_despite_a_recent_heartbeat() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    let database = Connection::open(home.database()).expect("the database opens");
    database.execute("update workers set boot_id = 'another'", []).expect("the statement is right");
    home.run(["worker", "forget", "w1"]).fails(4).says("worker `w1` is still running");
    drop(worker);
    home.run(["worker", "forget", "w1"]).ok().prints("a\n");
}

#[test]
fn an_unknown_worker_is_not_found_and_the_nearest_is_offered() {
    let home = Home::with_jobs(&["a"]);
    elsewhere(&home, "worker-1", Duration::from_secs(60));
    home.run(["worker", "forget", "worker-2"]).fails(3).says("did you mean `worker-1`?");
    home.run(["worker", "forget", "absent"])
        .fails(3)
        .says("hint: `queuectl show JOB` shows which worker holds a job");
    home.run(["worker", "forget", "a b"]).fails(2).says("invalid id `a b`");
    assert_eq!(home.state_of("a"), "processing");
    assert!(fs::metadata(home.database()).is_ok());
}
