//! The constraints of the schema refuse contradictory rows.

use rusqlite::ErrorCode;

use super::Home;
use crate::store::fixture::FAILURE;
use crate::store::fixture::new_job::job;

/// A queue with one job in each state, named after it.
fn one_of_each() -> Home {
    let home = Home::new();
    let fixture = home.fixture();
    let worker = fixture.worker("w");
    let success = domain::job::outcome::Outcome::Success;
    for (id, outcome, retries) in [("completed", success, 3), ("failed", FAILURE, 3), ("dead", FAILURE, 0)] {
        fixture.enqueue(job(id).max_retries(retries));
        fixture.run(&worker, outcome);
    }
    fixture.enqueue("processing");
    fixture.lease(&worker);
    fixture.enqueue_all([job("pending"), job("cancelled")]);
    fixture.cancel("cancelled");
    home
}

#[test]
fn contradictory_jobs_are_refused() {
    let home = one_of_each();
    let connection = home.connect();
    for (id, change) in [
        ("pending", "state = 'waiting'"),
        ("pending", "state = 'processing'"),
        ("pending", "state = 'completed'"),
        ("pending", "state = 'dead', finished_at = 1"),
        ("dead", "reason = 'boredom'"),
        ("pending", "blocked_by = -1"),
        ("pending", "cancel_requested = 1"),
        ("pending", "failures = 1"),
        ("pending", "failures = -1"),
        ("pending", "losses = -1"),
        ("pending", "max_retries = -1"),
        ("pending", "worker_seq = 1"),
        ("pending", "lease_until = 1"),
        ("pending", "finished_at = 1"),
        ("pending", "reason = 'user'"),
        ("pending", "timeout_ms = 0"),
        ("pending", "signal = 65"),
        ("pending", "id = 'failed'"),
        ("pending", "command = null"),
        ("pending", "priority = 'high'"),
        ("processing", "worker_seq = null"),
        ("processing", "lease_until = null"),
        ("processing", "blocked_by = 1"),
        ("processing", "cancel_requested = 3"),
        ("processing", "state = 'pending'"),
        ("completed", "finished_at = null"),
        ("completed", "reason = 'user'"),
        ("completed", "state = 'pending'"),
        ("completed", "blocked_by = 1"),
        ("failed", "finished_at = 1"),
        ("failed", "failures = 2"),
        ("failed", "blocked_by = 1"),
        ("dead", "reason = null"),
        ("dead", "reason = 'boredom'"),
        ("dead", "state = 'completed'"),
        ("cancelled", "finished_at = null"),
    ] {
        let sql = format!("update jobs set {change} where id = '{id}'");
        let error = connection.execute(&sql, []).expect_err(&sql);
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ConstraintViolation), "{sql}: {error}");
    }
    let harmless = connection.execute("update jobs set priority = 1, error = 'x'", []);
    assert_eq!(harmless, Ok(6), "a valid change is accepted");
}

#[test]
fn other_contradictory_rows_are_refused() {
    let home = one_of_each();
    let connection = home.connect();
    for sql in [
        "insert into attempts values (1, 0, 1, 0, 0, 0, 'success', 0, null, null, null, null, 0)",
        "insert into attempts values (1, 9, 1, 0, 0, -1, 'success', 0, null, null, null, null, 0)",
        "insert into attempts values (1, 9, 1, 0, 0, 0, 'bored', null, null, null, null, null, 0)",
        "insert into attempts values (1, 9, 1, 0, 0, 0, 'success', null, null, null, null, null, 0)",
        "insert into attempts values (1, 9, 1, 0, 0, 0, 'timeout', 1, null, null, null, null, 0)",
        "insert into attempts values (1, 9, 1, 0, 0, 0, 'signal', null, null, null, null, null, 0)",
        "insert into attempts values (1, 1, 1, 0, 0, 0, 'success', 0, null, null, null, null, 0)",
        "update counters set count = -1",
        "update queues set paused_at = 1",
        "update workers set state = 'asleep'",
        "update workers set concurrency = 0",
        "insert into ready select queue_id, priority, due_at, seq from ready",
        "insert into pending_unblocks values (1, 2, 0)",
        "insert into dependencies values (1, 2, 2)",
    ] {
        let error = connection.execute(sql, []).expect_err(sql);
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::ConstraintViolation), "{sql}: {error}");
    }
}
