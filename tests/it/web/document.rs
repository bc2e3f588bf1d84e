//! The OpenAPI document: it is the one in the repository, every route keeps its scope, and every answer has its schema.

use std::fs;

use serde_json::{Value, json};
use web::{ListedRoute, listed_routes};

use super::client::{Request, Server};
use super::rich::{self, unknown};
use super::schemas::{document, errors, reference};
use crate::REPOSITORY;
use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

const PLACE: &str = "docs/openapi.json";

#[test]
fn the_document_in_the_repository_is_the_present_one() {
    let path = format!("{REPOSITORY}/{PLACE}");
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&path, web::document()).expect("written");
    }
    let kept = fs::read_to_string(&path).expect("the document is text");
    assert!(
        kept == web::document(),
        "run this test with UPDATE_OPENAPI=1, and look at the difference in {PLACE}"
    );
}

#[test]
fn every_route_refuses_a_missing_a_wrong_and_a_smaller_scope() {
    const SCOPES: [&str; 4] = ["metrics", "read", "operate", "admin"];
    let server = Server::new();
    let tokens = SCOPES.map(|scope| server.token(scope));
    let mut seen = 0;
    for ListedRoute { method, path, scope, .. } in listed_routes() {
        seen += 1;
        let path = unknown(path);
        let request = || server.request(method, &path);
        let Some(needed) = scope else {
            assert!(![401, 403].contains(&closed(request()).status) || path.ends_with("/session"), "{path}");
            continue;
        };
        request().send().expects(401);
        let least = SCOPES.iter().position(|scope| *scope == needed.name()).expect("a scope");
        for (at, token) in tokens.iter().enumerate() {
            let answer = closed(request().bearer(token));
            let is_refused = answer.status == 403;
            assert_eq!(is_refused, at < least, "{method} {path} with {}: {}", SCOPES[at], answer.body);
            assert_ne!(answer.status, 401, "{method} {path}");
        }
    }
    assert!(seen > 70, "{seen}");
    let read_only = Server::start(Home::with_queue(), &["--read-only"]);
    for ListedRoute { method, path, .. } in listed_routes().filter(|route| route.method != "GET") {
        let answer = read_only.call(method, &unknown(path)).send();
        let is_session = path.ends_with("/session");
        assert!(answer.status == 403 || is_session, "{method} {path}: {} {}", answer.status, answer.body);
    }
}

/// Sends a request; of a stream only the beginning is read.
fn closed(request: Request<'_>) -> super::client::Response {
    let is_stream = [b"/stream", b"/live  "]
        .iter()
        .any(|part| request.bytes().windows(5).any(|bytes| bytes == &part[..5]));
    if !is_stream {
        return request.send();
    }
    // The server ends an HTTP/1.0 answer by closing, and it never closes a stream; a topic that does not exist ends it.
    let is_page = request.bytes().windows(5).any(|part| part == b"/live");
    let query = if is_page { "?page=/nope HTTP" } else { "?topics=nope HTTP" };
    let text = String::from_utf8(request.bytes()).expect("text").replacen(" HTTP", query, 1);
    let server = request.server();
    super::client::Response::parse("a stream".to_owned(), &server.raw(with_close(&text).as_bytes()))
}

fn with_close(text: &str) -> String {
    text.replacen("\r\nHost", "\r\nConnection: close\r\nHost", 1)
}

#[test]
fn answers_have_the_documented_form() {
    let server = Server::start(rich::home(), &[]);
    let check = |method: &str, template: &str, path: &str, body: Option<Value>, status: u16| {
        let request = server.call(method, &format!("/api/v1{path}"));
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().expects(status).json();
        let response = &document()["paths"][format!("/api/v1{template}")][method.to_lowercase()]["responses"];
        let content = response[status.to_string()]["content"].as_object();
        let content = content.unwrap_or_else(|| panic!("{method} {template} {status} is documented"));
        let (_, media) = content.iter().find(|(kind, _)| kind.contains("json")).expect("JSON");
        let errors = errors(&media["schema"], &answer);
        assert!(errors.is_empty(), "{method} {path} {status}: {errors:#?}\n{answer:#}");
    };
    for (template, path) in [
        ("/status", "/status"),
        ("/history", "/history?range=15m"),
        ("/upcoming", "/upcoming"),
        ("/jobs", "/jobs?limit=3"),
        ("/count", "/count?queue=default"),
        ("/failures", "/failures"),
        ("/jobs/{id}", "/jobs/ok"),
        ("/jobs/{id}", "/jobs/bad"),
        ("/jobs/{id}", "/jobs/1"),
        ("/jobs/{id}/explain", "/jobs/later/explain"),
        ("/jobs/{id}/graph", "/jobs/later/graph"),
        ("/jobs/{id}/attempts/{attempt}/log", "/jobs/bad/attempts/1/log"),
        ("/jobs/{id}/attempts/{attempt}/find", "/jobs/bad/attempts/latest/find?text=oops"),
        ("/causes", "/causes"),
        ("/actions", "/actions"),
        ("/queues", "/queues"),
        ("/queues/{queue}", "/queues/mail"),
        ("/workers", "/workers"),
        ("/schedules", "/schedules"),
        ("/schedules/{schedule}", "/schedules/nightly"),
        ("/calendar", "/calendar"),
        ("/batches", "/batches"),
        ("/batches/{batch}", "/batches/b"),
        ("/hooks", "/hooks"),
        ("/hooks/{hook}", "/hooks/notify"),
        ("/hooks/{hook}/deliveries", "/hooks/notify/deliveries"),
        ("/events", "/events"),
        ("/config", "/config"),
        ("/config/{key}", "/config/lease"),
        ("/suggest", "/suggest?field=queue&prefix=m"),
        ("/doctor", "/doctor"),
        ("/openapi.json", "/openapi.json"),
    ] {
        check("GET", template, path, None, 200);
    }
    for (template, path) in [("/jobs/{id}", "/jobs/nope"), ("/queues/{queue}", "/queues/nope")] {
        check("GET", template, path, None, 404);
    }
    check("GET", "/jobs", "/jobs?state=deda", None, 422);
    let job = json!({ "command": "true", "id": "new", "tags": ["a"], "delay": "1h" });
    check("POST", "/jobs", "/jobs", Some(job.clone()), 201);
    check("POST", "/jobs", "/jobs", Some(job.clone()), 409);
    check("POST", "/jobs", "/jobs?if_absent=true", Some(job), 200);
    check("POST", "/jobs", "/jobs", Some(json!([{ "command": "true" }])), 201);
    check("PATCH", "/jobs/{id}", "/jobs/new", Some(json!({ "priority": 7 })), 200);
    check("POST", "/jobs/{id}/clone", "/jobs/new/clone", None, 201);
    check("POST", "/jobs/{id}/cancel", "/jobs/new/cancel", None, 200);
    check("POST", "/jobs/{id}/retry", "/jobs/new/retry", Some(json!({ "edit": { "priority": 1 } })), 200);
    let dry = json!({ "verb": "retry", "filter": { "state": "dead" }, "dry_run": true });
    check("POST", "/actions", "/actions", Some(dry), 200);
    check("POST", "/actions", "/actions", Some(json!({ "verb": "retry", "ids": ["bad"] })), 202);
    check("PATCH", "/queues/{queue}", "/queues/mail", Some(json!({ "rate": null })), 200);
    check("POST", "/queues/{queue}/resume", "/queues/mail/resume", None, 200);
    let schedule = json!({ "name": "s", "every": "1h", "job": { "command": "true" } });
    check("POST", "/schedules", "/schedules", Some(schedule), 201);
    check("POST", "/schedules/{schedule}/run", "/schedules/s/run", None, 201);
    check("POST", "/schedules/{schedule}/pause", "/schedules/s/pause", None, 200);
    let hook = json!({ "name": "h", "on": ["dead"], "command": "cat" });
    check("POST", "/hooks", "/hooks", Some(hook), 201);
    check("POST", "/hooks/{hook}/test", "/hooks/h/test", None, 200);
    check("PUT", "/config/{key}", "/config/lease", Some(json!({ "value": "60s" })), 200);
    check("POST", "/workers/stop", "/workers/stop", None, 202);
}

#[test]
fn the_command_line_prints_what_the_schemas_describe() {
    let home = rich::home();
    let worker = TestWorker::new(&home, "w1");
    let mut wrong = Vec::new();
    for (words, schema) in [
        (&["show", "bad"][..], "JobRecord"),
        (&["list"], "Job[]"),
        (&["dlq", "list"], "Job[]"),
        (&["status"], "Status"),
        (&["history"], "History"),
        (&["queue", "list"], "Queue[]"),
        (&["worker", "list"], "Worker[]"),
        (&["schedule", "list"], "ScheduleSummary[]"),
        (&["schedule", "show", "nightly"], "ScheduleRecord"),
        (&["hook", "list"], "Hook[]"),
        (&["batch", "list"], "Batch[]"),
        (&["batch", "show", "b"], "BatchRecord"),
        (&["config", "list"], "Setting[]"),
        (&["config", "get", "lease"], "Setting"),
        (&["dlq", "list", "--group"], "Cause[]"),
        (&["explain", "later"], "Explanation"),
        (&["graph", "later"], "Graph"),
        (&["upcoming"], "Coming[]"),
        (&["doctor"], "Diagnosis"),
        (&["enqueue", "--id", "new", "--delay", "1h", "-c", "true"], "Enqueued"),
        (&["edit", "new", "--priority", "3"], "Job"),
        (&["cancel", "later", "new"], "CancelledJob[]"),
        (&["retry", "bad"], "Job[]"),
        (&["queue", "pause", "mail"], "Queue"),
        (&["queue", "resume", "mail"], "Queue"),
        (&["queue", "set", "mail", "--concurrency", "3"], "Queue"),
        (&["schedule", "pause", "nightly"], "Schedule"),
        (&["schedule", "resume", "nightly"], "Schedule"),
        (&["schedule", "run", "nightly"], "EnqueuedJob"),
        (&["hook", "test", "notify"], "HookTest"),
        (&["events"], "Event[]"),
    ] {
        let printed = home.run(words.iter().chain(&["--json"]));
        let mut printed = if schema == "Event[]" { lines(&printed.stdout) } else { printed.json() };
        if schema == "Status" {
            // The API adds when it was read.
            printed["at"] = json!("2026-01-01T00:00:00Z");
            printed["version"] = json!("0");
        }
        let errors = errors(&reference(schema), &printed);
        if !errors.is_empty() {
            wrong.push(format!("{words:?}: {errors:#?}\n{printed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(worker);
}

/// Lines of JSON as an array.
fn lines(text: &str) -> Value {
    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect()
}
