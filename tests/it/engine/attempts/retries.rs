//! Failing jobs: when they are retried, and when they are dead.

use serde_json::{Value, json};

use crate::engine::harness::{Home, Pool, history, millis_between};

/// The delays that the worker set after each failed attempt, from `worker.log`. No attempt started before its delay was
/// over; how long after it depends on the machine.
fn delays(home: &Home, job: &Value) -> Vec<i64> {
    let journal = home.journal();
    let retries = journal.lines().filter_map(|line| line.split_once(", retry at "));
    let retries: Vec<Value> = retries.map(|(_, at)| json!(at)).collect();
    let attempts = history(job);
    assert_eq!(retries.len() + 1, attempts.len(), "{journal}");
    for (pair, retry_at) in attempts.windows(2).zip(&retries) {
        assert!(millis_between(retry_at, &pair[1]["started_at"]) >= 0, "{retry_at}: {pair:?}");
    }
    attempts.iter().zip(&retries).map(|(failed, at)| millis_between(&failed["finished_at"], at)).collect()
}

#[test]
fn a_failing_job_is_retried_after_growing_pauses_and_is_then_dead() {
    let home = Home::new();
    home.set("retry_delay", "100ms");
    home.enqueue_with("bad", "echo no luck >&2; exit 3", "--max-retries 3");
    Pool::drain(&home, "");
    let job = home.show("bad");
    assert_eq!(job["state"], "dead");
    assert_eq!(job["reason"], "retries_exhausted");
    assert_eq!((&job["attempts"], &job["failures"]), (&json!(4), &json!(4)));
    assert_eq!((&job["exit_code"], &job["error"]), (&json!(3), &json!("exit code 3: no luck")));
    for (at, attempt) in history(&job).iter().enumerate() {
        assert_eq!(attempt["attempt"], at + 1);
        assert_eq!((&attempt["outcome"], &attempt["exit_code"]), (&json!("failure"), &json!(3)));
    }
    assert_eq!(delays(&home, &job), [200, 400, 800]);
}

#[test]
fn by_default_the_first_retry_comes_after_two_seconds() {
    let home = Home::new();
    home.enqueue_with("bad", "false", "--max-retries 1");
    Pool::drain(&home, "");
    assert_eq!(delays(&home, &home.show("bad")), [2_000]);
}

#[test]
fn a_dead_job_that_is_retried_gets_all_its_retries_again() {
    let home = Home::new();
    home.set("retry_delay", "10ms");
    home.enqueue_with("bad", "[ -e now-good ]", "--max-retries 1");
    Pool::drain(&home, "");
    home.run(["dlq", "retry", "bad"]).ok();
    Pool::drain(&home, "");
    let job = home.show("bad");
    assert_eq!((&job["state"], &job["attempts"], &job["failures"]), (&json!("dead"), &json!(4), &json!(2)));
    home.file("now-good", "");
    home.run(["dlq", "retry", "bad"]).ok();
    Pool::drain(&home, "");
    let job = home.show("bad");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(5)));
    assert_eq!((&job["exit_code"], &job["error"]), (&json!(0), &Value::Null));
}
