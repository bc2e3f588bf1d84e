//! Failing jobs: when they are retried, and when they are dead.

use std::ops::Range;

use serde_json::{Value, json};

use crate::engine::harness::{Home, Pool, history, millis_between};

/// How late an attempt may start on a busy machine.
const LATE: i64 = 700;

/// The waiting times between the attempts of a job.
fn pauses(job: &Value) -> Vec<i64> {
    let pairs = history(job).windows(2);
    pairs.map(|pair| millis_between(&pair[0]["finished_at"], &pair[1]["started_at"])).collect()
}

fn in_time(delay: i64) -> Range<i64> {
    delay..delay + LATE
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
    let pauses = pauses(&job);
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    for (pause, delay) in pauses.iter().zip([200, 400, 800]) {
        assert!(in_time(delay).contains(pause), "{pauses:?}");
    }
}

#[test]
fn by_default_the_first_retry_comes_after_two_seconds() {
    let home = Home::new();
    home.enqueue_with("bad", "false", "--max-retries 1");
    Pool::drain(&home, "");
    let pauses = pauses(&home.show("bad"));
    assert!(pauses.len() == 1 && in_time(2_000).contains(&pauses[0]), "{pauses:?}");
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
