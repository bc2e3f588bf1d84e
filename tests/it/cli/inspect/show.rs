use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

#[test]
fn a_new_job_is_described() {
    let home = Home::new();
    home.run([
        "enqueue",
        "--id",
        "job1",
        "--tag",
        "x,y",
        "--timeout",
        "90",
        "--cwd",
        "/",
        "--",
        "sleep",
        "2",
    ])
    .ok();
    let ran = home.run(["show", "job1"]).ok().says_nothing();
    let lines = ran.lines();
    assert_eq!(lines[0], "1  job1  pending");
    for line in [
        "  command       sleep 2",
        "  queue         default",
        "  tries         0 of 4 used",
        "  timeout       1m30s",
        "  cwd           /",
        "  tags          x, y",
    ] {
        assert!(lines.contains(&line), "`{line}` is missing: {ran}");
    }
}

#[test]
fn each_line_of_a_command_stays_a_line() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--command", "printf 'x\\n'\nsleep 2"]).ok();
    home.run(["show", "a"]).ok().shows("  command       printf 'x\\n'\n                sleep 2\n");
}

#[test]
fn json_includes_fields_that_list_omits() {
    let home = Home::with_jobs(&["a"]);
    let job = home.show("a");
    for (field, expected) in [
        ("backoff", Value::Null),
        ("limits", Value::Null),
        ("retry_on", Value::Null),
        ("no_retry_on", Value::Null),
        ("on_dependency_failure", json!("cancel")),
        ("env", json!([])),
        ("events", json!([])),
        ("history", json!([])),
    ] {
        assert_eq!(job.get(field), Some(&expected), "{field}");
    }
}

#[test]
fn the_history_lists_every_attempt() {
    let home = Home::new();
    home.failed_job("a");
    let job = home.show("a");
    let attempt = &job["history"][0];
    for (field, expected) in [
        ("attempt", json!(1)),
        ("worker_id", json!("worker-of-a")),
        ("host", json!("testhost")),
        ("outcome", json!("failure")),
        ("exit_code", json!(2)),
        ("signal", Value::Null),
        ("error", json!("exit code 2: no luck")),
        ("duration_ms", json!(1_500)),
        ("cpu_ms", json!(20)),
        ("max_rss_bytes", json!(1_048_576)),
        ("log_bytes", json!(12)),
    ] {
        assert_eq!(attempt[field], expected, "{field}");
    }
    assert_ne!(attempt["started_at"], Value::Null);
    assert_eq!((&job["state"], &job["attempts"], &job["failures"]), (&json!("failed"), &json!(1), &json!(1)));
    assert_ne!(job["next_retry_at"], Value::Null);
    home.run(["show", "a"])
        .ok()
        .shows("waits for     its next retry")
        .shows("exit code 2: no luck")
        .shows("ATTEMPT");
}

#[test]
fn a_running_job_shows_its_worker() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    let job = home.show("a");
    assert_eq!((&job["state"], &job["worker_id"]), (&json!("processing"), &json!("w1")));
    assert_ne!(job["lease_until"], Value::Null);
    assert_eq!(job["history"][0]["outcome"], Value::Null, "it has not ended");
    home.run(["show", "a"]).ok().shows("running");
}

#[test]
fn manual_changes_are_shown_as_events() {
    let home = Home::with_jobs(&["a"]);
    home.call(["cancel", "a"]).env("USER", "ada").run().ok();
    home.call(["retry", "a"]).env("USER", "bob").run().ok();
    let events = home.show("a")["events"].clone();
    assert_eq!((&events[0]["event"], &events[0]["by"]), (&json!("cancel"), &json!("ada")));
    assert_eq!((&events[1]["event"], &events[1]["by"]), (&json!("retry"), &json!("bob")));
    home.run(["show", "a"]).ok().shows("ada").shows("bob");
}

#[test]
fn unknown_and_invalid_ids_are_refused() {
    let home = Home::with_queue();
    home.run(["show", "nope"]).fails(3).prints("").says("there is no job `nope`").says("hint: ");
    home.run(["show", "a/b"]).fails(2).says("invalid id `a/b`");
    home.run(["show"]).fails(3).says("there are no jobs");
    home.run(["show", "a", "b"]).fails(2);
}

#[test]
fn limits_and_exit_codes_are_shown_as_they_were_given() {
    let home = Home::new();
    let given = r#"{"id":"a","command":"x","limits":{"memory":"1024M","nice":-5},"retry_on":[75,1]}"#;
    home.run(["enqueue", given]).ok();
    let call = ["enqueue", "--id", "b", "--limits", "memory=1G,nice=-5", "--no-retry-on", "2", "--", "x"];
    home.run(call).ok();
    let (a, b) = (home.show("a"), home.show("b"));
    assert_eq!(a["limits"], json!({"memory": "1G", "nice": -5}));
    assert_eq!(a["limits"], b["limits"]);
    assert_eq!((&a["retry_on"], &a["no_retry_on"]), (&json!([1, 75]), &Value::Null));
    assert_eq!((&b["retry_on"], &b["no_retry_on"]), (&Value::Null, &json!([2])));
    home.run(["show", "a"]).ok().shows("  limits        memory=1G,nice=-5").shows("  retry on      1,75");
    home.run(["show", "b"]).ok().shows("  no retry on   2");
}
