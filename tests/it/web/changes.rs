//! Changes over HTTP: an edit of many jobs, the order to stop one worker, a delivery that is tried at once.

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::Home;

/// Four jobs in the queue `mail`, one of them cancelled, and one elsewhere.
fn with_queues() -> Home {
    let home = Home::with_jobs(&["elsewhere"]);
    for id in ["a", "b", "c", "d"] {
        home.run(["enqueue", "-q", "--id", id, "--queue", "mail", "--", "true"]).ok();
    }
    home.run(["cancel", "-q", "d"]).ok();
    home
}

#[test]
fn many_jobs_are_edited_by_one_action() {
    let server = Server::start(with_queues(), &[]);
    let act = |body: &Value| server.post("/api/v1/actions", body);
    let edit = json!({ "queue": "slow", "priority": 7, "timeout": "2h" });
    let request = |extra: Value| {
        let mut body = json!({ "verb": "edit", "filter": { "queue": "mail" }, "edit": edit });
        body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        body
    };
    let preview = act(&request(json!({ "dry_run": true }))).expects(200).json();
    assert_eq!(preview, json!({ "count": 4, "exact": true, "by_state": { "pending": 3, "cancelled": 1 } }));
    assert_eq!(server.get("/api/v1/jobs/a")["priority"], 0, "a dry run changes nothing");
    act(&request(json!({ "expect": 3 }))).expects(409);
    let started = act(&request(json!({ "expect": 4 }))).expects(202);
    let path = started.header("Location").expect("a path").to_owned();
    let done = server.until(&path, |action| action["state"] == "finished");
    assert_eq!((&done["verb"], &done["done"], &done["left"]), (&json!("edit"), &json!(4), &json!(0)));
    for id in ["a", "b", "c", "d"] {
        let job = server.get(&format!("/api/v1/jobs/{id}"));
        assert_eq!(
            (&job["queue"], &job["priority"], &job["timeout_ms"]),
            (&json!("slow"), &json!(7), &json!(7_200_000)),
            "{job}"
        );
    }
    assert_eq!(server.get("/api/v1/jobs/elsewhere")["priority"], 0);
    let events = server.get("/api/v1/events?event=bulk_edit");
    assert_eq!(events[0]["detail"], "4 of 4 jobs: queue, priority, timeout");
    let by_ids = json!({ "verb": "edit", "ids": ["a", "b"], "edit": { "timeout": null } });
    let path = act(&by_ids).expects(202).header("Location").expect("a path").to_owned();
    server.until(&path, |action| action["state"] == "finished" && action["done"] == 2);
    assert_eq!(
        server.get("/api/v1/jobs/a")["timeout_ms"],
        Value::Null,
        "null returns a field to its default"
    );
}

#[test]
fn an_edit_that_cannot_be_given_to_many_changes_nothing() {
    let server = Server::start(with_queues(), &[]);
    for edit in [
        json!({ "command": "false" }),
        json!({ "name": "n" }),
        json!({}),
        json!({ "priorty": 3 }),
        json!({ "id": "x" }),
        json!({ "cwd": "relative" }),
    ] {
        let body = json!({ "verb": "edit", "filter": { "queue": "mail" }, "edit": edit });
        server.post("/api/v1/actions", &body).expects(422);
    }
    let filter = json!({ "queue": "mail" });
    server.post("/api/v1/actions", &json!({ "verb": "edit", "filter": filter })).expects(422);
    let misplaced = json!({ "verb": "cancel", "filter": filter, "edit": { "priority": 1 } });
    server.post("/api/v1/actions", &misplaced).expects(422);
    let edit = json!({ "verb": "edit", "filter": { "state": "completed" }, "edit": { "priority": 1 } });
    server.post("/api/v1/actions", &edit).expects(422);
    let operator = server.token("operate");
    let body = json!({ "verb": "edit", "filter": filter, "edit": { "priority": 1 } });
    server.request("POST", "/api/v1/actions").bearer(&operator).json(&body).send().expects(403);
    let job = server.get("/api/v1/jobs/a");
    assert_eq!((&job["command"], &job["priority"]), (&json!("true"), &json!(0)));
}

#[test]
fn one_worker_is_ordered_to_stop() {
    let server = Server::new();
    server.home.run(["worker", "start", "-q", "--count", "2"]).ok();
    let workers = server.get("/api/v1/workers");
    let [first, second] = [0, 1].map(|at| workers[at]["id"].as_str().expect("an id").to_owned());
    let path = format!("/api/v1/workers/{first}/stop");
    server.post(&path, &json!({ "now": true, "timeout": "1m" })).expects(422);
    server.post(&path, &json!({ "everywhere": true })).expects(422);
    let ordered = server.call("POST", &path).send().expects(202).json();
    assert_eq!(ordered["id"], first.as_str());
    let is_second = |workers: &Value| {
        workers.as_array().is_some_and(|left| left.len() == 1) && workers[0]["id"] == second.as_str()
    };
    server.until("/api/v1/workers", is_second);
    server.call("POST", &path).send().expects(404);
    assert_eq!(server.get("/api/v1/events?event=stop")[0]["detail"], first.as_str());
    server.home.run(["worker", "stop", "-q"]).ok();
}

#[test]
fn a_delivery_that_waits_is_tried_at_once() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    server
        .post("/api/v1/hooks", &json!({ "name": "h", "on": ["success"], "command": "exit 3" }))
        .expects(201);
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let waiting = || server.get("/api/v1/hooks/h/deliveries")["waiting"][0].clone();
    let before = waiting();
    let id = before["id"].as_str().expect("a delivery");
    let retry = |path: &str| server.call("POST", &format!("/api/v1/hooks/{path}/retry")).send();
    let one = retry(&format!("h/deliveries/{id}")).expects(200).json();
    assert_eq!(one, json!({ "hook": "h", "retried": 1 }));
    let (due, was_due) = (waiting()["due_at"].clone(), before["due_at"].clone());
    assert!(due.as_str() < was_due.as_str(), "{due} is not before {was_due}");
    assert_eq!(retry("h").expects(200).json()["hook"], "h");
    retry("h/deliveries/d-none").expects(404);
    retry("none").expects(404);
    retry("none/deliveries/d-none").expects(404);
}
