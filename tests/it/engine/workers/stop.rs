//! `worker stop`: running jobs may finish, or are released.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use serde_json::{Value, json};
use store::{Worker, WorkerState};

use crate::cli::harness::background::Background;
use crate::engine::harness::{Home, Pool, UNTIL_GO, history, is_alive, send, wait_until};

/// A home with one job that runs until the test creates `go`.
fn busy() -> Home {
    let home = Home::new();
    home.enqueue("long", UNTIL_GO);
    home
}

#[track_caller]
fn assert_released(home: &Home) {
    let job = home.show("long");
    assert_eq!(
        (&job["state"], &job["failures"], &job["error"]),
        (&json!("pending"), &json!(0), &Value::Null)
    );
    let attempt = &history(&job)[0];
    assert_eq!((&attempt["outcome"], &attempt["exit_code"]), (&json!("released"), &Value::Null));
    assert!(!is_alive(home.wait_for_pid("running")));
    home.file("go", "");
    Pool::drain(home, "");
    let job = home.show("long");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "it runs again");
}

#[test]
fn stop_waits_for_running_jobs_and_starts_no_more() {
    let home = busy();
    let _pool = Pool::start(&home, "--count 2");
    home.wait_for_file("running");
    // From any folder: only the home matters.
    let mut stop = Background::start(home.call(["worker", "stop"]).at("/".as_ref()));
    home.wait_until_draining();
    home.enqueue("later", "true");
    assert_eq!(home.state_of("long"), "processing");
    assert!(stop.is_running(), "it waits");
    home.file("go", "");
    assert!(stop.end().0.success());
    assert_eq!(home.workers(), []);
    assert_eq!((home.state_of("long").as_str(), home.state_of("later").as_str()), ("completed", "pending"));
    home.run(["worker", "stop"]).ok().says("No worker is running");
}

#[test]
fn stop_now_releases_running_jobs() {
    let home = busy();
    let _pool = Pool::start(&home, "");
    home.wait_for_file("running");
    home.run(["worker", "stop", "--now"]).ok().says("1 worker stopped");
    assert_released(&home);
}

#[test]
fn stop_with_a_timeout_releases_jobs_that_take_longer() {
    let home = busy();
    let pool = Pool::run(&home, "");
    home.wait_for_file("running");
    home.run(["worker", "stop", "--timeout", "200ms"]).ok();
    pool.ends_well();
    assert_released(&home);
}

#[test]
fn stop_releases_jobs_that_take_longer_than_the_setting() {
    let home = busy();
    home.set("shutdown_grace", "200ms");
    let _pool = Pool::start(&home, "");
    home.wait_for_file("running");
    home.run(["worker", "stop"]).ok();
    assert_released(&home);
}

#[test]
fn ctrl_c_ends_the_wait_but_not_the_drain() {
    let home = busy();
    let pool = Pool::run(&home, "");
    home.wait_for_file("running");
    let stop = Background::start(home.call(["worker", "stop"]));
    home.wait_until_draining();
    // It installs its signal handlers before it lists the workers for the first time.
    wait_until("it waits", || stop.waits());
    stop.signal(Signal::INT);
    assert_eq!(stop.end().0.signal(), Some(Signal::INT.as_raw()));
    assert_eq!(home.state_of("long"), "processing");
    home.file("go", "");
    pool.ends_well();
    assert_eq!(home.state_of("long"), "completed");
}

#[test]
fn a_stop_does_not_apply_to_workers_started_later() {
    let home = busy();
    let old = Pool::run(&home, "");
    home.wait_for_file("running");
    let stop = Background::start(home.call(["worker", "stop"]));
    home.wait_until_draining();
    let _new = Pool::start(&home, "");
    home.enqueue("later", "true");
    home.wait_for("later", "completed");
    home.file("go", "");
    old.ends_well();
    assert!(stop.end().0.success(), "it does not wait for the new one");
    assert_eq!(home.workers().len(), 1);
}

/// The id of the worker that runs this job.
fn worker_of(home: &Home, id: &str) -> String {
    home.wait_for(id, "processing")["worker_id"].as_str().expect("a worker").to_owned()
}

fn wait_until_drains(home: &Home, worker: &str) {
    let drains = |known: &Worker| known.id.as_str() == worker && known.state == WorkerState::Draining;
    wait_until("the worker drains", || home.workers().iter().any(drains));
}

#[test]
fn one_worker_of_a_pool_stops_and_the_others_continue() {
    let home = busy();
    let _pool = Pool::start(&home, "--count 2");
    home.wait_for_file("running");
    let worker = worker_of(&home, "long");
    let mut stop = Background::start(home.call(["worker", "stop", &worker]));
    wait_until_drains(&home, &worker);
    home.enqueue("later", "true");
    home.wait_for("later", "completed");
    assert!(stop.is_running(), "it waits for the job of its worker alone");
    home.file("go", "");
    assert!(stop.end().0.success());
    assert_eq!(home.state_of("long"), "completed");
    assert_eq!(home.workers().len(), 1);
    home.run(["worker", "stop", &worker]).fails(3).says("there is no worker").says("hint: ");
    home.run(["worker", "stop", &worker, "--everywhere"]).fails(2);
    home.run(["events", "--json"])
        .ok()
        .shows(&format!("\"kind\":\"worker\",\"job\":null,\"detail\":\"{worker}\""));
}

#[test]
fn stop_now_of_one_worker_releases_its_jobs_only() {
    let home = busy();
    home.enqueue("other", "while ! test -e stop; do sleep 0.02; done");
    let _pool = Pool::start(&home, "--count 2");
    home.wait_for_file("running");
    let (worker, other) = (worker_of(&home, "long"), worker_of(&home, "other"));
    assert_ne!(worker, other, "each has one slot");
    home.run(["worker", "stop", &worker, "--now"]).ok().says("1 worker stopped");
    let job = home.show("long");
    assert_eq!(history(&job)[0]["outcome"], "released");
    assert_eq!(worker_of(&home, "other"), other, "its job runs on");
    home.file("stop", "");
    home.file("go", "");
    home.wait_for("other", "completed");
    home.wait_for("long", "completed");
}

#[test]
fn a_worker_that_crashes_while_it_stops_is_not_replaced() {
    let home = busy();
    let _pool = Pool::start(&home, "--count 2");
    home.wait_for_file("running");
    let worker = worker_of(&home, "long");
    let pid = home.workers().iter().find(|known| known.id.as_str() == worker).expect("it runs").pid;
    let stop = Background::start(home.call(["worker", "stop", &worker]));
    wait_until_drains(&home, &worker);
    send(pid, Signal::KILL);
    assert!(stop.end().0.success(), "nothing is left to wait for");
    home.file("go", "");
    home.wait_for("long", "completed");
    assert_ne!(history(&home.show("long"))[1]["worker_id"], worker.as_str());
    assert_eq!(home.workers().len(), 1, "its pool does not replace it");
}
