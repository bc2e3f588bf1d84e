//! `queuectl events`

use std::io::{BufRead, BufReader};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::working_home::WorkingHome;

/// Longer than any step here takes.
const BOUND: Duration = Duration::from_secs(60);

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
    home.run(["events"])
        .ok()
        .shows("  cancel      ada  job a\n")
        .shows("  remove      ada  job b\n")
        .shows("  config set  ada  setting lease = 1m");
    assert_eq!((&all[0]["kind"], &all[3]["kind"]), (&"job".into(), &"setting".into()));
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
        (&["queue", "pause", "q", "--reason", "r"], "pause", Some("q (r)")),
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
    assert_eq!(all[0]["detail"], all[1]["detail"], "both name the process");
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

#[test]
fn columns_line_up_under_a_heading_on_a_terminal() {
    let home = Home::with_jobs(&["a"]);
    home.call(["cancel", "-q", "a"]).env("USER", "a-user-with-a-long-name").run().ok();
    home.call(["queue", "pause", "-q", "mail"]).env("USER", "ada").run().ok();
    let seen = on_terminal(home.call(["events", "--color", "never"]).into_command(), 120, "").screen;
    let lines: Vec<&str> = seen.lines().collect();
    let about = lines[0].find("ABOUT").expect("a heading");
    assert_eq!((&lines[1][about..], &lines[2][about..]), ("job a", "queue mail"), "{seen}");
    assert!(lines[2].contains("  queue pause  "), "{seen}");
    let none = home.run(["events"]).ok();
    assert!(!none.stdout.contains("ABOUT"), "no heading in a pipe: {none}");
}

#[test]
fn jobs_are_shown_from_enqueuing_to_their_end() {
    let home = Home::with_queue();
    home.run(["events", "--jobs"]).ok().prints("").says("no events");
    home.run(["enqueue", "-q", "--id", "good", "--", "echo", "hi"]).ok();
    home.run(["enqueue", "-q", "--id", "bad", "--max-retries", "0", "--command", "echo no >&2; exit 3"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let of = |job: &str, args: &[&str]| {
        let all = events(&home, &[&["--jobs"], args].concat());
        let of_job = all.into_iter().filter(|event| event["job"] == job);
        let short = |event: Value| {
            assert_eq!(event["kind"], "job");
            format!("{} {} {}", event["event"], event["attempt"], event["state"]).replace('"', "")
        };
        of_job.map(short).collect::<Vec<String>>()
    };
    let good = ["job_enqueued null null", "attempt_started 1 null", "attempt_ended 1 completed"];
    assert_eq!(of("good", &[]), good);
    assert_eq!(of("bad", &[])[2], "attempt_ended 1 dead");
    assert_eq!(of("good", &["--job", "good"]), good);
    assert_eq!(of("bad", &["--job", "good"]), [""; 0]);
    assert_eq!(of("good", &["--since", "1h"]), good);
    assert_eq!(events(&home, &["--jobs", "--limit", "1"]).len(), 1);
    let names = names(&events(&home, &[])).join(" ");
    assert!(!names.contains("attempt"), "only on request: {names}");
    let line = "job bad attempt 1: exit code 3: no (";
    home.run(["events", "--jobs"])
        .ok()
        .shows(line)
        .shows("), dead: retries exhausted")
        .shows("job good  echo hi");
}

#[test]
fn follow_shows_jobs_as_they_run() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "old", "--", "true"]).ok();
    let mut child = home.call(["events", "-f", "--jobs", "--json"]).spawn();
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let (sender, lines) = channel();
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let wait_for = |job: &str, event: &str| loop {
        let line = lines.recv_timeout(BOUND).unwrap_or_else(|_| panic!("no line says {event} of job {job}"));
        let found: Value = serde_json::from_str(&line).expect("an object");
        if found["job"] == job && found["event"] == event {
            return;
        }
    };
    wait_for("old", "job_enqueued");
    home.run(["enqueue", "-q", "--id", "new", "--", "true"]).ok();
    wait_for("new", "job_enqueued");
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    wait_for("old", "attempt_started");
    wait_for("old", "attempt_ended");
    wait_for("new", "attempt_ended");
    child.kill().expect("it is ours");
    child.wait().expect("it is gone");
}
