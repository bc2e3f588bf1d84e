//! The server over a queue in PostgreSQL: every route that reads, once, and a few changes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::Home;
use crate::store::fixture::schema::Schema;
use crate::store::postgres::proxy::{CUT_BEFORE_COMMIT, Fault, proxy_to};

/// Everything that a route can be about occurs once.
fn server(schema: &Schema) -> Server {
    let (home, address) = (Home::new(), schema.address.to_string());
    for words in [
        &["enqueue", "-q", "--id", "ok", "--tag", "x", "--batch", "b", "--command", "echo hi"][..],
        &["enqueue", "-q", "--id", "bad", "--max-retries", "0", "--command", "echo oops >&2; exit 3"],
        &["worker", "run", "-q", "--until-empty"],
        &["enqueue", "-q", "--id", "later", "--delay", "1h", "--depends-on", "ok", "--", "true"],
        &["queue", "pause", "mail", "--reason", "down"],
        &["schedule", "add", "nightly", "--cron", "0 3 * * *", "--tz", "UTC", "--", "true"],
        &["hook", "add", "notify", "--on", "dead", "--", "true"],
    ] {
        home.call(["--store", &address].iter().chain(words)).run().ok();
    }
    Server::start(home, &["--store", &address])
}

#[test]
fn every_route_that_reads_answers() {
    let schema = Schema::new();
    let server = server(&schema);
    for path in [
        "/status",
        "/history?range=15m",
        "/upcoming",
        "/jobs?limit=3",
        "/jobs?state=dead&exit_code=3",
        "/count?tag=x",
        "/failures",
        "/jobs/ok",
        "/jobs/later/explain",
        "/jobs/later/graph",
        "/jobs/bad/attempts/1/log",
        "/jobs/bad/attempts/latest/find?text=oops",
        "/causes",
        "/actions",
        "/queues",
        "/queues/mail",
        "/workers",
        "/schedules",
        "/schedules/nightly",
        "/calendar",
        "/batches",
        "/batches/b",
        "/hooks",
        "/hooks/notify",
        "/hooks/notify/deliveries",
        "/events",
        "/config",
        "/config/lease",
        "/suggest?field=queue&prefix=m",
        "/doctor",
    ] {
        server.call("GET", &format!("/api/v1{path}")).send().expects(200);
    }
    assert_eq!(server.get("/api/v1/status")["jobs"]["dead"], 1);
    assert_eq!(server.get("/api/v1/jobs?exit_code=3")[0]["id"], "bad");
    server.call("GET", "/readyz").send().expects(200);
    let metrics = server.call("GET", "/metrics").send().expects(200).body;
    assert!(metrics.contains("queuectl_jobs{queue=\"default\",state=\"dead\"} 1"), "{metrics}");
}

#[test]
fn jobs_are_enqueued_and_changed() {
    let schema = Schema::new();
    let server = server(&schema);
    server.post("/api/v1/jobs", &json!({ "id": "new", "command": "true", "delay": "1h" })).expects(201);
    server.call("POST", "/api/v1/jobs/new/cancel").send().expects(200);
    assert_eq!(server.get("/api/v1/jobs/new")["state"], "cancelled");
    server.post("/api/v1/jobs", &json!({ "id": "new", "command": "true" })).expects(409);
}

/// The commit may or may not have arrived: the same request with the same key finds out, and stores the job once.
#[test]
fn a_request_whose_commit_was_cut_off_is_repeated_with_its_key() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let home = Home::new();
    home.call(["--store", &schema.address.to_string(), "enqueue", "-q", "--id", "first", "--", "true"])
        .run()
        .ok();
    let server = Server::start(home, &["--store", &proxy.address.to_string()]);
    let send = |key: &str, body: &Value| {
        server.call("POST", "/api/v1/jobs").json(body).with("Idempotency-Key", key).send()
    };
    let one = json!({ "command": "true" });
    let many = json!([{ "command": "true" }, { "command": "false" }]);
    for (fault, was_stored) in [(CUT_BEFORE_COMMIT, false), (Fault::DropAnswer, true)] {
        for (what, body, count) in [("one", &one, 1), ("many", &many, 2)] {
            let key = format!("{what}-{was_stored}");
            // Its session exists, so that the fault meets the commit of the job.
            server.call("POST", "/api/v1/queues/warm/resume").send().expects(200);
            let before = server.get("/api/v1/count?queue=default")["count"].as_u64().expect("a number");
            proxy.set(fault);
            let failed = send(&key, body).expects(500).json();
            proxy.set(Fault::None);
            assert_eq!(failed["type"], "/problems/outcome_unknown", "{failed}");
            assert_eq!(
                (&failed["exit_code"], failed["ids"].as_array().map(Vec::len)),
                (&json!(6), Some(count)),
                "{failed}"
            );
            let again = send(&key, body).expects(if was_stored { 200 } else { 201 }).json();
            let jobs = again.as_array().cloned().unwrap_or_else(|| vec![again.clone()]);
            let ids: Vec<&Value> = jobs.iter().map(|job| &job["id"]).collect();
            assert_eq!(ids, failed["ids"].as_array().expect("ids").iter().collect::<Vec<_>>());
            send(&key, body).expects(200);
            let after = server.get("/api/v1/count?queue=default")["count"].as_u64().expect("a number");
            assert_eq!(after, before + count as u64, "{key}: each job is stored once");
        }
    }
}

/// A request waits 2 s for a lock, and 6 s for the server; the rest is for a busy machine.
const LOCK_BOUND: Duration = Duration::from_secs(6);
const SILENCE_BOUND: Duration = Duration::from_secs(15);

#[track_caller]
fn assert_unavailable(server: &Server, (method, path): (&str, &str), kind: &str, bound: Duration) {
    let began = Instant::now();
    let answer = server.call(method, path).send().expects(503);
    assert_eq!(answer.json()["type"], format!("/problems/{kind}"), "{}", answer.body);
    assert!(answer.header("Retry-After").is_some(), "{}", answer.head);
    assert!(began.elapsed() < bound, "{method} {path}: {:?}", began.elapsed());
}

#[test]
fn a_table_that_another_session_has_locked_is_503_soon_and_other_tables_are_read_meanwhile() {
    let schema = Schema::new();
    let server = server(&schema);
    server.get("/api/v1/jobs");
    let other = schema.session();
    other.run("begin; lock table jobs in access exclusive mode");
    for call in [("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs/later/cancel")] {
        assert_unavailable(&server, call, "busy", LOCK_BOUND);
    }
    server.get("/api/v1/config");
    other.run("rollback");
    let began = Instant::now();
    server.get("/api/v1/jobs");
    other.run("begin; lock table gate_1 in access exclusive mode");
    assert_unavailable(&server, ("POST", "/api/v1/jobs/later/cancel"), "busy", LOCK_BOUND);
    server.get("/api/v1/jobs");
    other.run("rollback");
    server.call("POST", "/api/v1/jobs/later/cancel").send().expects(200);
    assert!(began.elapsed() < LOCK_BOUND, "{:?}", began.elapsed());
}

#[test]
fn a_server_that_is_silent_is_503_soon_and_served_at_once_when_it_speaks() {
    let schema = Schema::new();
    let proxy = proxy_to(&schema.address);
    let home = Home::new();
    let first = ["enqueue", "-q", "--id", "first", "--delay", "1h", "--", "true"];
    home.call(["--store", &schema.address.to_string()].iter().chain(&first)).run().ok();
    let server = Server::start(home, &["--store", &proxy.address.to_string()]);
    server.get("/api/v1/jobs");
    server.call("POST", "/api/v1/queues/warm/resume").send().expects(200);
    proxy.set(Fault::BlackHole);
    // In a session that was open, and in one that cannot be opened.
    for call in [("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs/first/cancel")].repeat(2) {
        assert_unavailable(&server, call, "unavailable", SILENCE_BOUND);
    }
    server.request("GET", "/healthz").send().expects(200);
    proxy.set(Fault::None);
    let began = Instant::now();
    assert_eq!(server.get("/api/v1/jobs/first")["state"], "pending");
    server.call("POST", "/api/v1/jobs/first/cancel").send().expects(200);
    assert!(began.elapsed() < LOCK_BOUND, "{:?}", began.elapsed());
}
