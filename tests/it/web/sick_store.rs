//! A store that is busy, read-only, corrupt, newer or gone: the server answers with the right status, and lives on.

use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::client::{Response, Server};
use crate::cli::harness::Home;

fn problem(answer: &Response) -> (u16, Value) {
    (answer.status, answer.json()["type"].clone())
}

#[test]
fn a_busy_store_is_503_with_a_time_to_retry() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    server.get("/api/v1/jobs");
    let other = Connection::open(server.home.database()).expect("opened");
    other.execute_batch("begin immediate").expect("locked");
    let answer = server.call("POST", "/api/v1/jobs/a/cancel").send();
    assert_eq!(problem(&answer), (503, json!("/problems/busy")), "{}", answer.body);
    assert!(answer.header("Retry-After").is_some(), "{}", answer.head);
    assert_eq!(server.get("/api/v1/jobs")[0]["state"], "pending", "readers are not held up");
    other.execute_batch("rollback").expect("unlocked");
    server.call("POST", "/api/v1/jobs/a/cancel").send().expects(200);
}

#[test]
fn a_corrupt_a_newer_and_a_missing_store_are_reported_until_they_are_whole_again() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let database = server.home.database();
    let whole = fs::read(&database).expect("read");
    let put = |bytes: &[u8]| {
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", database.display()));
        }
        let new = database.with_extension("new");
        fs::write(&new, bytes).expect("written");
        fs::rename(&new, &database).expect("replaced");
    };
    put(&[b"not a database".repeat(1_000), whole[..100].to_vec()].concat());
    let corrupt = server.call("GET", "/readyz").send();
    assert_eq!(corrupt.status, 500, "{}", corrupt.body);
    put(&whole);
    Connection::open(&database).expect("opened").pragma_update(None, "user_version", 9_999).expect("newer");
    let newer = server.call("GET", "/api/v1/jobs").send();
    assert_eq!(problem(&newer), (500, json!("/problems/corrupt")), "{}", newer.body);
    assert_eq!(newer.json()["exit_code"], 7);
    put(&whole);
    server.call("GET", "/api/v1/jobs").send().expects(200);
    fs::rename(server.home.path(), server.home.folder().join("elsewhere")).expect("moved");
    server.request("GET", "/readyz").send();
    server.request("GET", "/healthz").send().expects(200);
    assert!(!server.home.path().exists(), "the server creates no home");
    fs::rename(server.home.folder().join("elsewhere"), server.home.path()).expect("moved back");
    server.call("GET", "/api/v1/jobs").send().expects(200);
}
