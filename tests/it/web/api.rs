//! What the routes do.

use serde_json::{Value, json};

use super::client::Server;
use crate::cli::harness::Home;

#[test]
fn a_job_is_enqueued_shown_edited_cancelled_retried_and_removed() {
    let server = Server::new();
    let job = json!({ "command": "true", "id": "a:b.c", "delay": "1h" });
    let created = server.post("/api/v1/jobs", &job).expects(201);
    assert_eq!(created.header("Location"), Some("/api/v1/jobs/a%3Ab.c"));
    assert_eq!(server.get("/api/v1/jobs/a%3Ab.c")["state"], "pending");
    assert_eq!(server.get("/api/v1/jobs/1")["id"], "a:b.c");
    server.post("/api/v1/jobs", &job).expects(409);
    let edited = server
        .call("PATCH", "/api/v1/jobs/1")
        .json(&json!({ "priority": 3, "run_at": null }))
        .send()
        .expects(200);
    assert_eq!((edited.json()["priority"].clone(), edited.json()["run_at"].clone()), (json!(3), Value::Null));
    server.call("POST", "/api/v1/jobs/1/cancel").send().expects(200);
    server.call("POST", "/api/v1/jobs/1/cancel").send().expects(409);
    server.call("POST", "/api/v1/jobs/1/retry").send().expects(200);
    server.call("DELETE", "/api/v1/jobs/1").send().expects(204);
    let gone = server.call("GET", "/api/v1/jobs/1").send().expects(404).json();
    assert_eq!((gone["exit_code"].clone(), gone["type"].clone()), (json!(3), json!("/problems/not_found")));
    let by: Vec<Value> = server
        .get("/api/v1/events")
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["by"].clone())
        .collect();
    assert!(by.iter().any(|by| by == "token:test"), "{by:?}");
}

#[test]
fn an_array_is_stored_whole_or_not_at_all() {
    let server = Server::new();
    let bad = json!([{ "command": "true" }, { "command": "true", "delay": "x" }]);
    let refused = server.post("/api/v1/jobs", &bad).expects(422).json();
    assert_eq!(refused["errors"][0]["pointer"], "/1", "{refused}");
    let contradictory =
        json!([{ "command": "true" }, { "command": "true", "max_retries": 1, "max_attempts": 2 }]);
    let refused = server.post("/api/v1/jobs", &contradictory).expects(422).json();
    assert_eq!(refused["errors"][0]["pointer"], "/1", "{refused}");
    assert!(server.home.is_empty());
    let jobs: Vec<Value> = (0..3).map(|at| json!({ "command": format!("echo {at}") })).collect();
    let stored = server.post("/api/v1/jobs?batch=b", &json!(jobs)).expects(201).json();
    assert_eq!(stored.as_array().map(Vec::len), Some(3));
    assert_eq!(server.get("/api/v1/batches/b")["total"], 3);
}

#[test]
fn a_repeated_request_with_the_same_key_finds_the_same_job() {
    let server = Server::new();
    let send = |command: &str, key: &str| {
        server
            .call("POST", "/api/v1/jobs")
            .json(&json!({ "command": command }))
            .with("Idempotency-Key", key)
            .send()
    };
    let first = send("echo a", "k1").expects(201).json();
    let again = send("echo a", "k1").expects(200).json();
    assert_eq!((first["id"].clone(), again["existing"].clone()), (again["id"].clone(), json!(true)));
    send("echo b", "k1").expects(422);
    send("echo b", "k2").expects(201);
    assert_eq!(server.home.count(), 2);
}

#[test]
fn pages_and_filters_find_every_job_once() {
    let home = Home::new();
    for at in 0..25 {
        let (id, queue) = (format!("j{at}"), if at % 2 == 0 { "even" } else { "odd" });
        home.run(["enqueue", "-q", "--id", &id, "--queue", queue, "--", "true"]).ok();
    }
    let server = Server::start(home, &[]);
    let (mut path, mut ids) = ("/api/v1/jobs?limit=4&queue=odd".to_owned(), Vec::new());
    loop {
        let page = server.call("GET", &path).send().expects(200);
        assert!(
            page.header("Queuectl-Searched").is_some_and(|value| value.ends_with("complete=?1")),
            "{}",
            page.head
        );
        ids.extend(page.json().as_array().expect("a list").iter().map(|job| job["id"].to_string()));
        // The last job of a page may be removed before the next page is read.
        let last = page.json()[3]["id"].as_str().map(str::to_owned);
        last.map(|id| server.call("DELETE", &format!("/api/v1/jobs/{id}")).send().expects(204));
        match page
            .header("Link")
            .and_then(|link| link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"").map(str::to_owned))
        {
            Some(next) => path = next,
            None => break,
        }
    }
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!((ids.len(), distinct.len()), (12, 12), "{ids:?}");
    let count = server.get("/api/v1/count?queue=even");
    assert_eq!((count["count"].clone(), count["exact"].clone()), (json!(13), json!(true)));
    let columns = server.get("/api/v1/jobs?limit=1&columns=id,state");
    assert_eq!(columns[0].as_object().map(serde_json::Map::len), Some(2));
    for bad in [
        "limit=1001",
        "limit=0",
        "limit=x",
        "after=~x",
        "columns=nope",
        "order=nope",
        "queu=x",
        "state=nope",
        "like=",
    ] {
        let answer = server.call("GET", &format!("/api/v1/jobs?{bad}")).send();
        assert_eq!(answer.status, if bad == "like=" { 200 } else { 422 }, "{bad}: {}", answer.body);
    }
}

#[test]
fn a_version_is_answered_once_and_changed_only_if_it_is_the_present_one() {
    let server = Server::start(Home::with_jobs(&["a"]), &[]);
    let first = server.call("GET", "/api/v1/jobs/a").send().expects(200);
    let tag = first.header("ETag").expect("a tag").to_owned();
    let again = server.call("GET", "/api/v1/jobs/a").with("If-None-Match", &tag).send().expects(304);
    assert_eq!(again.body, "");
    let edit = |tag: &str, priority: u32| {
        let request = server.call("PATCH", "/api/v1/jobs/a").json(&json!({ "priority": priority }));
        request.with("If-Match", tag).send()
    };
    edit("W/\"x\"", 1).expects(412);
    edit(&tag, 2).expects(200);
    edit(&tag, 3).expects(412);
    server.call("GET", "/api/v1/jobs/a").with("If-None-Match", &tag).send().expects(200);
    assert_eq!(server.get("/api/v1/jobs/a")["priority"], 2);
    server.call("GET", "/api/v1/jobs").with("Accept", "text/html").send().expects(406);
    let wrong = server.call("PUT", "/api/v1/jobs/a").send().expects(405);
    assert_eq!(wrong.header("Allow"), Some("GET, HEAD, PATCH, DELETE"));
    let head = server.call("HEAD", "/api/v1/jobs/a").send().expects(200);
    assert_eq!(head.body, "");
}

#[test]
fn an_action_counts_first_then_changes_and_refuses_more_than_expected() {
    let home = Home::new();
    for at in 0..30 {
        home.run(["enqueue", "-q", "--id", &format!("d{at}"), "--max-retries", "0", "--", "false"]).ok();
    }
    home.run(["worker", "run", "-q", "--until-empty", "--concurrency", "4"]).ok();
    let server = Server::start(home, &[]);
    let act = |body: &Value| server.post("/api/v1/actions", body);
    let dead = json!({ "state": "dead" });
    let preview = act(&json!({ "verb": "retry", "filter": dead, "dry_run": true })).expects(200).json();
    assert_eq!(preview, json!({ "count": 30, "exact": true, "by_state": { "dead": 30 } }));
    assert_eq!(server.get("/api/v1/count?state=dead")["count"], 30, "a dry run changes nothing");
    act(&json!({ "verb": "purge", "filter": dead })).expects(422);
    act(&json!({ "verb": "purge", "filter": dead, "expect": 29 })).expects(409);
    act(&json!({ "verb": "retry", "filter": {} })).expects(422);
    act(&json!({ "verb": "retry", "filter": { "state": "pending" } })).expects(422);
    act(&json!({ "verb": "explode", "ids": [] })).expects(422);
    let causes = server.get("/api/v1/causes");
    assert_eq!((causes.as_array().map(Vec::len), causes[0]["count"].clone()), (Some(1), json!(30)));
    let canary = format!("/api/v1/causes/{}/canary", causes[0]["cause"].as_str().expect("an id"));
    let started = server.call("POST", &canary).send().expects(202);
    let path = started.header("Location").expect("a path").to_owned();
    server.until(&path, |action| action["state"] == "finished");
    assert_eq!(server.get("/api/v1/count?state=dead")["count"], 29);
    let started = act(&json!({ "verb": "purge", "filter": dead, "expect": 29 })).expects(202);
    let path = started.header("Location").expect("a path").to_owned();
    let done = server.until(&path, |action| action["state"] == "finished");
    assert_eq!(
        (done["done"].clone(), done["left"].clone(), done["by"].clone()),
        (json!(29), json!(0), json!("token:test"))
    );
    let events = server.get("/api/v1/events?event=bulk_purge");
    assert_eq!(events[0]["detail"], "29 of 29 jobs");
    server.call("GET", "/api/v1/actions/a-0").send().expects(404);
}

#[test]
fn output_is_read_in_parts_and_searched() {
    let server = Server::new();
    let job = json!({ "command": "for i in 1 2 3; do echo line $i; done; echo oops >&2", "id": "a" });
    server.post("/api/v1/jobs", &job).expects(201);
    server.call("GET", "/api/v1/jobs/a/attempts/1/log").send().expects(404);
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let text = |query: &str| {
        server.call("GET", &format!("/api/v1/jobs/a/attempts/1/log?as=text{query}")).send().expects(200).body
    };
    assert_eq!(text("&stream=stdout"), "line 1\nline 2\nline 3\n");
    assert_eq!(text("&stream=stdout&tail=1"), "line 3\n");
    assert_eq!(text("&stream=stdout&from=7"), "line 2\nline 3\n");
    let found = server.get("/api/v1/jobs/a/attempts/latest/find?text=line%202");
    assert_eq!((found[0]["text"].clone(), found.as_array().map(Vec::len)), (json!("line 2"), Some(1)));
    server.call("GET", "/api/v1/jobs/a/attempts/2/log").send().expects(404);
    server.call("GET", "/api/v1/jobs/a/attempts/x/log").send().expects(404);
    server.call("GET", "/api/v1/jobs/a/attempts/1/log?stream=x").send().expects(422);
}

#[test]
fn settings_schedules_and_hooks_are_checked_before_they_are_stored() {
    let server = Server::new();
    for (path, body) in [
        ("/schedules", json!({ "name": "s", "job": { "command": "true" } })),
        ("/schedules", json!({ "name": "s", "cron": "x", "job": { "command": "true" } })),
        ("/schedules", json!({ "name": "s", "cron": "* ".repeat(200), "job": { "command": "true" } })),
        ("/schedules", json!({ "name": "s", "every": "1h", "cron": "@daily", "job": { "command": "true" } })),
        ("/schedules", json!({ "name": "s", "every": "1h", "job": { "comand": "true" } })),
        ("/hooks", json!({ "name": "h", "on": ["nope"], "command": "true" })),
        ("/hooks", json!({ "name": "h", "on": ["dead"] })),
        ("/hooks", json!({ "name": "h", "on": ["dead"], "url": "ftp://x" })),
    ] {
        server.post(&format!("/api/v1{path}"), &body).expects(422);
    }
    server.call("PUT", "/api/v1/config/lease").json(&json!({ "value": "x" })).send().expects(422);
    server.call("PUT", "/api/v1/config/nope").json(&json!({ "value": "1" })).send().expects(422);
    let no_field = server.call("GET", "/api/v1/suggest?prefix=l").send().expects(422);
    assert_eq!(no_field.json()["detail"], "`field` is missing");
    let set = server
        .call("PUT", "/api/v1/config/lease")
        .json(&json!({ "value": "60s" }))
        .send()
        .expects(200)
        .json();
    assert_eq!((set["value"].clone(), set["origin"].clone()), (json!("1m"), json!("store")));
    let reset = server.call("DELETE", "/api/v1/config/lease").send().expects(200).json();
    assert_eq!(reset["origin"], "default");
    server.post("/api/v1/hooks", &json!({ "name": "h", "on": ["dead"], "command": "exit 3" })).expects(201);
    server.call("POST", "/api/v1/hooks/h/test").send().expects(502);
    server.call("PATCH", "/api/v1/queues/q").json(&json!({ "concurrency": 0 })).send().expects(422);
    server.call("PATCH", "/api/v1/queues/q").json(&json!({})).send().expects(422);
    server.call("PATCH", "/api/v1/queues/q").json(&json!({ "concurrency": 2 })).send().expects(200);
    assert_eq!(server.get("/api/v1/queues/q")["concurrency"], 2);
    server.call("DELETE", "/api/v1/queues/q").send().expects(204);
}

#[test]
fn a_job_belongs_to_the_trace_of_its_request() {
    let server = Server::new();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request =
        server.call("POST", "/api/v1/jobs").json(&json!({ "id": "a", "command": "echo $TRACEPARENT" }));
    request.with("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01")).send().expects(201);
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let printed = server.home.run(["logs", "a"]).ok().stdout;
    assert!(
        printed.starts_with(&format!("00-{trace}-")) && !printed.contains("00f067aa0ba902b7"),
        "{printed}"
    );
}
