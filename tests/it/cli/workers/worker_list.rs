use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::working_home::WorkingHome;

#[test]
fn without_workers_list_prints_an_empty_array_or_a_hint() {
    let home = Home::with_queue();
    home.run(["worker", "list", "--json"]).ok().prints("[]\n").says_nothing();
    let hint = "hint: no worker is running; start one with `queuectl worker start`\n";
    assert_eq!(home.run(["worker", "list"]).ok().prints("").stderr, hint);
    home.run(["worker", "list", "-q"]).ok().prints("").says_nothing();
    let seen = on_terminal(home.call(["worker", "list", "--color", "never"]).into_command(), 100, "");
    assert_eq!((seen.screen.as_str(), seen.code), (hint, Some(0)));
}

#[test]
fn starting_workers_on_a_terminal_says_how_to_stop_them() {
    let home = WorkingHome::new();
    for (count, said) in [
        ("2", "2 workers started in the background\nhint: `queuectl worker stop` stops them; "),
        (
            "1",
            "1 worker started in the background; all workers have 6 slots now\nhint: `queuectl worker stop` stops it; ",
        ),
    ] {
        let call = home.call(["--color", "never", "worker", "start", "-c", count, "-j", "2"]);
        let seen = on_terminal(call.into_command(), 80, "");
        let said = format!("{said}`worker run` stays in the foreground\n");
        assert_eq!((seen.screen.as_str(), seen.code), (said.as_str(), Some(0)));
    }
    assert_eq!(home.run(["worker", "start", "-n", "2"]).ok().prints("").stderr, "2 workers started\n");
    assert_eq!(home.workers().len(), 5);
    home.run(["worker", "stop", "-q"]).ok();
}

#[test]
fn a_worker_has_the_documented_shape() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    let mut shown = home.run(["worker", "list", "--json"]).ok().says_nothing().json();
    for field in ["started_at", "last_heartbeat"] {
        assert!(shown[0][field].take().is_string(), "{field}");
    }
    let expected = json!({"id": "w1", "pid": 4242, "supervisor_pid": null, "host": "testhost", "queues": null,
                          "concurrency": 1, "running": 1, "state": "running", "started_at": null,
                          "last_heartbeat": null});
    assert_eq!(shown, json!([expected]));
}

#[test]
fn list_prints_one_row_per_worker_oldest_first() {
    let home = Home::with_jobs(&["a"]);
    let first = TestWorker::new(&home, "w1");
    let _second = TestWorker::new(&home, "w2");
    first.claim_job("a");
    let ran = home.run(["worker", "list"]).ok().says_nothing();
    let expected = [
        ("WORKER  STATE    RUNNING   PID  STARTED ", " HEARTBEAT  QUEUES"),
        ("w1      running      1/1  4242  ", " all"),
        ("w2      idle         0/1  4242  ", " all"),
    ];
    assert_eq!(ran.lines().len(), expected.len(), "{ran}");
    for (line, (begins, ends)) in ran.lines().iter().zip(expected) {
        assert!(line.starts_with(begins) && line.ends_with(ends), "{ran}");
    }
}

#[test]
fn a_deregistered_worker_is_not_listed() {
    let home = Home::new();
    let stays = TestWorker::new(&home, "w1");
    drop(TestWorker::new(&home, "w2"));
    let ids = |list: &Value| list.as_array().expect("an array").iter().map(|w| w["id"].clone()).collect();
    let listed: Vec<Value> = ids(&home.run(["worker", "list", "--json"]).ok().json());
    assert_eq!(listed, [json!(stays.id.as_str())]);
}
