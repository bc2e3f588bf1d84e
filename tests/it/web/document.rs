//! The OpenAPI document: it is the one in the repository, every route keeps its scope, and every answer has its schema.

use std::fs;

use serde_json::{Value, json};

use super::client::{Request, Server};
use crate::REPOSITORY;
use crate::cli::harness::Home;

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

/// Every operation: method, path, scope.
fn operations() -> Vec<(String, String, Option<String>)> {
    let document: Value = serde_json::from_str(&web::document()).expect("JSON");
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let scope = operation["x-scope"].as_str().map(str::to_owned);
            found.push((method.to_uppercase(), path.clone(), scope));
        }
    }
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// The path with a name in place of each parameter.
fn filled(path: &str) -> String {
    path.split('/')
        .map(|part| if part.starts_with('{') { "nope" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[test]
fn every_route_refuses_a_missing_a_wrong_and_a_smaller_scope() {
    const SCOPES: [&str; 4] = ["metrics", "read", "operate", "admin"];
    let server = Server::new();
    let tokens = SCOPES.map(|scope| server.token(scope));
    for (method, path, needed) in operations() {
        let path = filled(&path);
        let request = || server.request(&method, &path);
        let Some(needed) = needed else {
            assert!(![401, 403].contains(&closed(request()).status) || path.ends_with("/session"), "{path}");
            continue;
        };
        request().send().expects(401);
        let least = SCOPES.iter().position(|scope| *scope == needed).expect("a scope");
        for (at, token) in tokens.iter().enumerate() {
            let answer = closed(request().bearer(token));
            let is_refused = answer.status == 403;
            assert_eq!(is_refused, at < least, "{method} {path} with {}: {}", SCOPES[at], answer.body);
            assert_ne!(answer.status, 401, "{method} {path}");
        }
    }
    let read_only = Server::start(Home::with_queue(), &["--read-only"]);
    for (method, path, _) in operations().into_iter().filter(|(method, _, _)| method != "GET") {
        let answer = read_only.call(&method, &filled(&path)).send();
        let is_session = path.ends_with("/session");
        assert!(answer.status == 403 || is_session, "{method} {path}: {} {}", answer.status, answer.body);
    }
}

/// Sends a request; of a stream only the beginning is read.
fn closed(request: Request<'_>) -> super::client::Response {
    let is_stream = request.bytes().windows(6).any(|part| part == b"stream");
    if !is_stream {
        return request.send();
    }
    // The server ends an HTTP/1.0 answer by closing, and it never closes a stream; a topic that does not exist ends it.
    let text = String::from_utf8(request.bytes()).expect("text").replacen(" HTTP", "?topics=nope HTTP", 1);
    let server = request.server();
    super::client::Response::parse("a stream".to_owned(), &server.raw(with_close(&text).as_bytes()))
}

fn with_close(text: &str) -> String {
    text.replacen("\r\nHost", "\r\nConnection: close\r\nHost", 1)
}

/// A schema of the document, with everything that it refers to.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut schema = schema.clone();
    schema["components"] = document["components"].clone();
    jsonschema::draft202012::new(&schema).expect("a valid schema")
}

#[track_caller]
fn validate(document: &Value, method: &str, path: &str, status: u16, body: &Value) {
    let response = &document["paths"][path][method.to_lowercase()]["responses"][status.to_string()];
    let content =
        response["content"].as_object().unwrap_or_else(|| panic!("{method} {path} {status} is documented"));
    let (_, media) = content.iter().find(|(kind, _)| kind.contains("json")).expect("JSON");
    let validator = validator(document, &media["schema"]);
    let errors: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {path} {status}: {errors:#?}\n{body:#}");
}

/// A queue in which everything occurs once.
fn busy_home() -> Home {
    let home = Home::new();
    for words in [
        &["enqueue", "-q", "--id", "ok", "--tag", "x", "--batch", "b", "--", "echo hi"][..],
        &["enqueue", "-q", "--id", "bad", "--max-retries", "0", "--", "echo oops >&2; exit 3"],
        &["enqueue", "-q", "--id", "again", "--max-retries", "1", "--command", "exit 4"],
        &["worker", "run", "-q", "--until-empty"],
        &["enqueue", "-q", "--id", "later", "--delay", "1h", "--depends-on", "ok", "--", "true"],
        &["queue", "set", "mail", "--concurrency", "2", "--rate", "10/m"],
        &["queue", "pause", "mail", "--reason", "down"],
        &["schedule", "add", "nightly", "--cron", "0 3 * * *", "--tz", "UTC", "--", "true"],
        &["schedule", "run", "nightly"],
        &["hook", "add", "notify", "--on", "dead", "--", "true"],
    ] {
        home.run(words).ok();
    }
    home
}

#[test]
fn answers_have_the_documented_form() {
    let server = Server::start(busy_home(), &[]);
    let document: Value = serde_json::from_str(&web::document()).expect("JSON");
    let check = |method: &str, template: &str, path: &str, body: Option<Value>, status: u16| {
        let request = server.call(method, &format!("/api/v1{path}"));
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().expects(status);
        validate(&document, method, &format!("/api/v1{template}"), status, &answer.json());
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
    let home = busy_home();
    let document: Value = serde_json::from_str(&web::document()).expect("JSON");
    for (words, schema) in [
        (&["show", "bad"][..], "JobRecord"),
        (&["list"], "Job[]"),
        (&["queue", "list"], "Queue[]"),
        (&["schedule", "show", "nightly"], "ScheduleRecord"),
        (&["hook", "list"], "Hook[]"),
        (&["batch", "list"], "Batch[]"),
        (&["config", "list"], "Setting[]"),
        (&["dlq", "list", "--group"], "Cause[]"),
        (&["explain", "later"], "Explanation"),
        (&["graph", "later"], "Graph"),
        (&["upcoming"], "Coming[]"),
        (&["doctor"], "Diagnosis"),
    ] {
        let printed = home.run(words.iter().chain(&["--json"])).json();
        let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let schema = match schema.strip_suffix("[]") {
            Some(element) => json!({ "type": "array", "items": reference(element) }),
            None => reference(schema),
        };
        let validator = validator(&document, &schema);
        let errors: Vec<String> = validator.iter_errors(&printed).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{words:?}: {errors:#?}");
    }
}
