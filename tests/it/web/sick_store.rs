//! A store that is busy, read-only, corrupt, newer or gone: the server answers with the right status, and lives on.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::client::{Response, Server};
use crate::chaos::small_disk::SmallDisk;
use crate::cli::faults::read_only::read_only;
use crate::cli::harness::Home;
use crate::cli::harness::background::Background;

fn problem(answer: &Response) -> (u16, Value) {
    (answer.status, answer.json()["type"].clone())
}

/// A request waits 2 s for a lock; the rest is for a busy machine.
const LOCK_BOUND: Duration = Duration::from_secs(6);

#[track_caller]
fn assert_busy(answer: &Response, began: Instant) {
    assert_eq!(problem(answer), (503, json!("/problems/busy")), "{}", answer.body);
    assert_eq!(answer.json()["exit_code"], 5);
    assert!(answer.header("Retry-After").is_some(), "{}", answer.head);
    assert!(began.elapsed() < LOCK_BOUND, "{:?}", began.elapsed());
}

#[test]
fn a_store_that_another_process_writes_to_is_503_for_changes_soon_and_can_be_read_meanwhile() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let cancel = || server.call("POST", "/api/v1/jobs/a/cancel").send();
    let other = Connection::open(server.home.database()).expect("opened");
    other.execute_batch("begin immediate").expect("locked");
    let began = Instant::now();
    assert_busy(&cancel(), began);
    // More than the server handles at once.
    let began = Instant::now();
    let closing = || server.call("POST", "/api/v1/jobs/a/cancel").with("Connection", "close");
    let waiting: Vec<TcpStream> = (0..60).map(|_| closing().open()).collect();
    // When this one is answered, the server has accepted all before it.
    server.get("/api/v1/jobs");
    for _ in 0..10 {
        let read = Instant::now();
        assert_eq!(server.get("/api/v1/jobs")[0]["state"], "pending");
        assert!(read.elapsed() < LOCK_BOUND / 3, "readers are held up: {:?}", read.elapsed());
    }
    for mut waiting in waiting {
        let mut answer = String::new();
        waiting.read_to_string(&mut answer).expect("an answer");
        assert_busy(&Response::parse("cancel".to_owned(), &answer), began);
    }
    other.execute_batch("rollback").expect("unlocked");
    let began = Instant::now();
    cancel().expects(200);
    assert!(began.elapsed() < LOCK_BOUND / 3, "{:?}", began.elapsed());
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

#[test]
fn a_full_disk_is_507_and_everything_can_still_be_read() {
    let disk = SmallDisk::new();
    disk.call(&["enqueue", "-q", "--id", "a", "--", "true"]).run().ok();
    let token = disk.call(&["dashboard", "token", "add", "test", "--scope", "admin"]).run().ok().stdout;
    let process = Background::start_through(disk.call(&["dashboard", "--listen", "127.0.0.1:0", "--json"]));
    let server = Server::of_process(Home::new(), process, token.trim());
    assert_eq!(server.get("/api/v1/jobs")[0]["id"], "a");
    disk.fill();
    let large = json!({ "command": format!(": {}", "x".repeat(50_000)) });
    // The log of the database may have room for the first.
    let answer = (0..50).map(|_| server.post("/api/v1/jobs", &large)).find(|answer| answer.status != 201);
    let answer = answer.expect("the disk is full");
    assert_eq!(problem(&answer), (507, json!("/problems/full")), "{}", answer.body);
    assert_eq!(answer.json()["exit_code"], 5);
    let cancel = server.call("POST", "/api/v1/jobs/a/cancel").send();
    assert!([200, 507].contains(&cancel.status), "{}", cancel.body);
    assert!(server.get("/api/v1/jobs").as_array().is_some_and(|jobs| !jobs.is_empty()));
    server.get("/api/v1/status");
    server.call("GET", "/metrics").send().expects(200);
    disk.empty();
    server.post("/api/v1/jobs", &json!({ "command": "true", "id": "after" })).expects(201);
}

#[test]
fn a_read_only_filesystem_is_503_for_changes_and_everything_can_still_be_read() {
    let home = Home::with_jobs(&["a"]);
    let token = home.run(["dashboard", "token", "add", "test", "--scope", "admin"]).ok().stdout;
    let words = ["dashboard", "--listen", "127.0.0.1:0", "--json"];
    let Some(call) = read_only(&home, &words) else { return };
    let process = Background::start_through(call);
    let server = Server::of_process(home, process, token.trim());
    assert_eq!(server.get("/api/v1/jobs")[0]["id"], "a");
    for (method, path) in
        [("POST", "/api/v1/jobs/a/cancel"), ("DELETE", "/api/v1/jobs/a"), ("POST", "/api/v1/queues/q/pause")]
    {
        let answer = server.call(method, path).send();
        assert_eq!(problem(&answer), (503, json!("/problems/unavailable")), "{}", answer.body);
    }
    server.post("/api/v1/jobs", &json!({ "command": "true" })).expects(503);
    assert_eq!(server.get("/api/v1/jobs")[0]["state"], "pending");
    server.call("GET", "/readyz").send().expects(200);
    server.get("/api/v1/status");
}

#[test]
fn damage_in_the_middle_of_the_database_is_500_where_it_is_read() {
    let home = Home::new();
    let line = |at| {
        format!("{}\n", json!({ "id": format!("j{at}"), "command": format!(": {}", "x".repeat(2_000)) }))
    };
    home.call(["enqueue", "-q", "-"]).with_stdin((0..200).map(line).collect::<String>()).run().ok();
    checkpoint(&home);
    let server = Server::start(home, &[]);
    let whole = fs::read(server.home.database()).expect("read");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64 * 1_024].fill(0xa5);
    fs::write(server.home.database(), &bytes).expect("written");
    let answer = server.call("GET", "/api/v1/jobs?limit=1000&order=oldest&like=nothing").send();
    assert_eq!(problem(&answer), (500, json!("/problems/corrupt")), "{}", answer.body);
    assert_eq!(answer.json()["exit_code"], 7);
    server.request("GET", "/healthz").send().expects(200);
    fs::write(server.home.database(), &whole).expect("written");
    server.call("GET", "/api/v1/jobs?limit=1000").send().expects(200);
}

fn checkpoint(home: &Home) {
    let database = Connection::open(home.database()).expect("opened");
    database.execute_batch("pragma wal_checkpoint(truncate)").expect("it is complete");
}
