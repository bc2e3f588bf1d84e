//! `queuectl events`

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::harness::Home;
use super::working_home::WorkingHome;

fn events(home: &Home, args: &[&str]) -> Vec<Value> {
    let ran = home.run([&["events", "--json"], args].concat()).ok();
    ran.lines().iter().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("a name")).collect()
}

#[test]
fn what_people_did_is_told_with_who_and_what() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["events"]).ok().prints("").says("nothing has happened");
    let by = |args: &[&str]| {
        home.call(args).env("USER", "ada").run().ok();
    };
    by(&["cancel", "a"]);
    by(&["retry", "a"]);
    by(&["remove", "b"]);
    by(&["config", "set", "lease", "60s"]);
    by(&["config", "unset", "lease"]);
    let all = events(&home, &[]);
    assert_eq!(names(&all), ["cancel", "retry", "remove", "set", "set"]);
    assert!(all.iter().all(|event| event["by"] == "ada"), "{all:?}");
    assert_eq!((&all[0]["job"], &all[2]["job"], &all[2]["detail"]), (&"a".into(), &Value::Null, &"b".into()));
    assert_eq!(all[3]["detail"], "lease = 1m (was 30s)");
    assert_eq!(all[4]["detail"], "lease = 30s (was 1m)");
    assert_eq!(names(&events(&home, &["--job", "a"])), ["cancel", "retry"]);
    assert_eq!(names(&events(&home, &["--limit", "2"])), ["set", "set"]);
    assert_eq!(events(&home, &["--since", "1h"]), all);
    assert_eq!(events(&home, &["--limit", "0"]).len(), 0);
    home.run(["events", "--job", "nobody"]).fails(3);
    home.run(["events"]).ok().shows("cancel a  by ada").shows("(b)");
}

#[test]
fn workers_come_and_go() {
    let home = Home::with_jobs(&["a"]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["run", "-q", "--", "true"]).ok();
    let all = events(&home, &[]);
    assert_eq!(names(&all), ["worker_started", "worker_stopped"], "the worker of a run is not told of");
    assert_eq!(all[0]["by"], all[1]["by"]);
}

#[test]
fn what_happens_is_followed() {
    let home = WorkingHome::new();
    for id in ["a", "b"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    home.run(["cancel", "-q", "a"]).ok();
    let mut child = home.call(["events", "-f", "--json"]).spawn();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("an object")
    };
    assert_eq!(next()["job"], "a");
    home.run(["cancel", "-q", "b"]).ok();
    assert_eq!(next()["job"], "b");
    child.kill().expect("it is ours");
    child.wait().expect("it is gone");
}
