//! `queuectl events`

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::cli::harness::Home;
use crate::cli::harness::working_home::WorkingHome;

fn events(home: &Home, args: &[&str]) -> Vec<Value> {
    let ran = home.run([&["events", "--json"], args].concat()).ok();
    ran.lines().iter().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().expect("a name")).collect()
}

#[test]
fn events_show_the_user_and_the_detail() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["events"]).ok().prints("").says("no events");
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
    home.run(["events", "--job", "absent"]).fails(3).says("hint: `queuectl list` shows all jobs");
    home.run(["events"]).ok().shows("  cancel            ada         a\n").shows("  b\n");
}

/// Every change that a user can make, in order, with its event. A call that changes nothing records no event.
#[test]
fn every_manual_change_is_recorded() {
    let home = Home::with_jobs(&["a", "b", "c"]);
    home.run(["enqueue", "-q", "--id", "in-batch", "--batch", "many", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "dies", "--max-retries", "0", "--priority", "9", "--", "false"]).ok();
    home.run(["run", "-q", "--id", "done", "--", "true"]).ok();
    for (args, event, detail) in [
        (&["cancel", "a"][..], "cancel", None),
        (&["retry", "a"], "retry", None),
        (&["retry", "dies"], "", None),
        (&["edit", "a", "--priority", "3"], "edit", Some("priority")),
        (&["remove", "b"], "remove", Some("b")),
        (&["batch", "cancel", "many", "--yes"], "cancel", None),
        (&["queue", "set", "q", "--concurrency", "2"], "set", Some("queue q: concurrency 2")),
        (&["queue", "pause", "q", "--reason", "r"], "pause", Some("q")),
        (&["queue", "resume", "q"], "resume", Some("q")),
        (&["schedule", "add", "s", "--every", "1h", "--", "true"], "schedule_add", Some("s")),
        (&["schedule", "edit", "s", "--every", "2h"], "schedule_edit", Some("s")),
        (&["schedule", "edit", "s", "--every", "2h"], "", None),
        (&["schedule", "pause", "s"], "schedule_pause", Some("s")),
        (&["schedule", "resume", "s"], "schedule_resume", Some("s")),
        (&["schedule", "run", "s"], "schedule_run", Some("s")),
        (&["schedule", "remove", "s"], "schedule_remove", Some("s")),
        (&["hook", "add", "h", "--on", "dead", "--command", "true"], "hook_add", Some("h")),
        (&["hook", "remove", "h"], "hook_remove", Some("h")),
        (&["config", "set", "lease", "60s"], "set", Some("lease = 1m (was 30s)")),
        (&["config", "unset", "lease"], "set", Some("lease = 30s (was 1m)")),
        (&["prune", "--state", "dead", "--yes"], "", None),
        (&["prune", "done"], "prune", Some("1 jobs, 0 outputs, 0 events")),
        (&["backup", "copy"], "backup", Some("copy")),
        (&["export", "copy.jsonl", "c"], "", None),
        (&["remove", "c"], "remove", Some("c")),
        (&["import", "copy.jsonl"], "import", Some("1 jobs")),
        (&["restore", "copy", "--yes"], "restore", None),
    ] {
        let before = events(&home, &["--limit", "10000"]).last().cloned();
        let ran = home.call(args).env("USER", "ada").run();
        let last = events(&home, &["--limit", "10000"]).pop();
        if event.is_empty() {
            assert_eq!(last, before, "{args:?}: {ran}");
            continue;
        }
        ran.ok();
        let last = last.expect("an event");
        assert_ne!(Some(&last), before.as_ref(), "{args:?}");
        assert_eq!((&last["event"], &last["by"]), (&event.into(), &"ada".into()), "{args:?}: {last}");
        if let Some(detail) = detail {
            assert_eq!(last["detail"], detail, "{args:?}");
        }
    }
}

#[test]
fn starting_and_stopping_workers_is_recorded() {
    let home = Home::with_jobs(&["a"]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["run", "-q", "--", "true"]).ok();
    let all = events(&home, &[]);
    assert_eq!(names(&all), ["worker_started", "worker_stopped"], "the worker of a run is not recorded");
    assert_eq!(all[0]["by"], all[1]["by"]);
}

#[test]
fn follow_prints_new_events() {
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
