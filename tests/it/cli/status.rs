use std::time::Duration;

use queuectl::store::{Pause, Queues};
use serde_json::{Value, json};

use super::harness::Home;
use super::test_worker::TestWorker;

#[test]
fn a_worker_for_one_job_is_none_for_the_others() {
    let home = Home::with_jobs(&["a", "b"]);
    let _worker = TestWorker::for_job(&home, "w1", "a");
    home.run(["enqueue", "--id", "c", "--", "true"]).ok().says("hint: no worker is running");
    home.run(["status"]).ok().shows("! 2 jobs wait and no worker is running");
    home.run(["remove", "--yes", "b", "c"]).ok();
    home.run(["status"]).ok().shows_no("!");
}

#[test]
fn an_empty_queue_is_all_zeros() {
    let home = Home::new();
    let zeros =
        json!({"pending": 0, "processing": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0});
    let status = home.run(["status", "--json"]).ok().says_nothing().json();
    assert_eq!(status, json!({"jobs": zeros, "queues": [], "workers": [], "problems": []}));
}

#[test]
fn queues_have_their_own_counts() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["enqueue", "-q", "--queue", "mail", "--", "true"]).ok();
    home.run(["cancel", "a"]).ok();
    let status = home.run(["status", "--json"]).ok().json();
    let counts =
        json!({"pending": 1, "processing": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 1});
    let queue = json!({"name": "default", "paused": false, "paused_at": null, "paused_by": null,
                       "pause_reason": null, "concurrency": null, "rate": null, "next_start_at": null,
                       "jobs": counts});
    assert_eq!(status["queues"][0], queue);
    assert_eq!(status["queues"][1]["jobs"]["pending"], 1);
    assert_eq!((&status["jobs"]["pending"], &status["jobs"]["cancelled"]), (&json!(2), &json!(1)));
}

#[test]
fn a_worker_has_the_documented_shape() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    let mut shown = home.run(["status", "--json"]).ok().json()["workers"][0].take();
    for field in ["started_at", "last_heartbeat"] {
        assert!(shown[field].take().is_string(), "{field}");
    }
    let expected = json!({"id": "w1", "pid": 4242, "guardian_pid": null, "host": "testhost", "queues": null,
                          "concurrency": 1, "running": 1, "state": "running", "started_at": null,
                          "last_heartbeat": null});
    assert_eq!(shown, expected);
    home.run(["status"]).ok().shows("w1      running      1/1  4242").shows_no("no worker");
}

#[test]
fn a_worker_for_one_job_serves_no_queue() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::for_job(&home, "w1", "a");
    assert_eq!(home.run(["status", "--json"]).ok().json()["workers"][0]["queues"], json!([]));
    home.run(["status"]).ok().shows("job a");
    worker.claim_job("a");
}

#[test]
fn a_table_of_the_states() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["status"]).ok().says_nothing().prints(
        "QUEUE    PENDING  PROCESSING  COMPLETED  FAILED  DEAD  CANCELLED\n\
         default        2           0          0       0     0          0\n\
         \n\
         ! 2 jobs wait and no worker is running; start one with `queuectl worker start`\n",
    );
    home.run(["status", "-q"]).ok().prints("");
}

fn problems(home: &Home) -> Value {
    home.run(["status", "--json"]).ok().json()["problems"].take()
}

#[test]
fn what_is_wrong_is_said() {
    let home = Home::with_jobs(&["a"]);
    let message = "1 job waits and no worker is running; start one with `queuectl worker start`";
    assert_eq!(problems(&home), json!([{"problem": "no_worker", "message": message}]));

    let _worker = TestWorker::new(&home, "w1");
    assert_eq!(problems(&home), json!([]), "a worker runs");

    home.run(["config", "set", "durability", "normal"]).ok();
    assert_eq!(problems(&home)[0]["problem"], "durability_lowered");
    home.run(["config", "unset", "durability"]).ok();

    let pause = Pause { by: "ada".to_owned(), reason: Some("the disk is full".to_owned()) };
    home.store().pause_queue(&"default".parse().expect("a name"), &pause).expect("it is paused");
    let paused = problems(&home);
    assert_eq!(paused[0]["problem"], "queue_paused");
    let message = paused[0]["message"].as_str().expect("text");
    assert!(message.contains("ada") && message.contains("the disk is full"), "{message}");
    home.run(["status"]).ok().shows("default (paused)");
}

#[test]
fn a_worker_that_missed_its_heartbeats_is_a_problem() {
    let home = Home::new();
    let _workers = (TestWorker::new(&home, "w1"), TestWorker::new(&home, "w2"));
    home.silence("w2", Duration::from_secs(14));
    assert_eq!(problems(&home), json!([]), "three heartbeats take 15s");
    home.silence("w2", Duration::from_secs(3_600));
    let silent = problems(&home);
    assert_eq!((silent.as_array().map(Vec::len), &silent[0]["problem"]), (Some(1), &json!("silent_worker")));
    let message = silent[0]["message"].as_str().expect("text");
    assert!(message.starts_with("worker w2 was last heard from 1h"), "{message}");
    home.run(["config", "set", "lease", "3h"]).ok();
    home.run(["config", "set", "heartbeat_interval", "1h"]).ok();
    assert_eq!(problems(&home), json!([]), "the setting says what is late");
}
