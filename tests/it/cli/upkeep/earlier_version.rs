//! A queue that an earlier version stored or exported keeps its meaning.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::harness::Home;

fn file(name: &str) -> PathBuf {
    PathBuf::from(crate::REPOSITORY).join("tests/stored").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).expect(name)
}

/// What the earlier version showed for each job.
fn shown() -> Vec<Value> {
    text("shown.jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A home with the database of the earlier version.
fn stored_home() -> Home {
    let home = Home::new();
    drop(home.store());
    let database = home.database();
    for companion in ["-wal", "-shm"] {
        let mut path = database.clone().into_os_string();
        path.push(companion);
        let _ = fs::remove_file(path);
    }
    fs::write(&database, fs::read(file("queue.db")).expect("queue.db")).expect("the database is written");
    home
}

fn imported_home() -> Home {
    let home = Home::new();
    home.run(["import".into(), "-q".into(), file("export.jsonl")]).ok();
    home
}

/// A job, without the fields that the earlier version did not show.
fn show(home: &Home, id: &str) -> Value {
    let mut job = home.show(id);
    let fields = job.as_object_mut().expect("an object");
    assert!(fields.remove("number").is_some_and(|number| number.is_u64()));
    for new in ["name", "paused_at"] {
        assert_eq!(fields.remove(new), Some(Value::Null), "{new}");
    }
    job
}

#[test]
fn its_jobs_are_shown_as_before() {
    for home in [stored_home(), imported_home()] {
        for expected in shown() {
            assert_eq!(show(&home, expected["id"].as_str().expect("an id")), expected);
        }
    }
}

#[test]
fn its_schedule_enqueues_the_same_job() {
    for home in [stored_home(), imported_home()] {
        let shown = home.run(["schedule", "show", "nightly", "--json"]).ok().json();
        assert_eq!(shown["job"]["backoff"], json!({"strategy": "fixed", "delay": "5s", "max": "1h"}));
        let id = home.run(["schedule", "run", "nightly"]).ok().stdout.trim().to_owned();
        let job = home.show(&id);
        for (field, expected) in [
            ("command", json!("echo 'a b'")),
            ("queue", json!("media")),
            ("priority", json!(4)),
            ("max_retries", json!(2)),
            ("timeout_ms", json!(90_000)),
            ("backoff", json!({"strategy": "fixed", "delay": "5s", "max": "1h"})),
            ("unique_key", json!("n")),
            ("unique_for", json!("2h")),
            ("cwd", json!("/tmp")),
            ("env", json!(["A"])),
            ("tags", json!(["x", "y"])),
            ("limits", json!({"memory": "1G", "cpu": 0.5})),
            ("retry_on", json!([75])),
            ("no_retry_on", json!([2, 3])),
        ] {
            assert_eq!(job[field], expected, "{field}");
        }
    }
}

/// An edit rewrites all options of a job.
#[test]
fn its_jobs_keep_their_options_when_they_are_edited() {
    let home = stored_home();
    home.run(["edit", "-q", "full", "--priority", "1"]).ok();
    let mut expected = shown().into_iter().find(|job| job["id"] == "full").expect("the job");
    let mut edited = show(&home, "full");
    for job in [&mut expected, &mut edited] {
        for field in ["priority", "updated_at", "events"] {
            job[field].take();
        }
    }
    assert_eq!(edited, expected);
}

#[test]
fn its_queue_is_exported_as_before() {
    let exported = stored_home().run(["export"]).ok().stdout;
    let lines = |text: &str| text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (exported, expected): (Vec<Value>, Vec<Value>) = (lines(&exported), lines(&text("export.jsonl")));
    assert_eq!(exported, expected);
}

/// The counters of attempts did not exist: they begin with the first job that this version runs.
#[test]
fn its_queue_counts_from_now_on() {
    let home = stored_home();
    let total = || home.run(["metrics", "--json"]).ok().json()["queues"][0]["total"].clone();
    assert_eq!((&total()["enqueued"], &total()["started"]), (&json!(0), &json!(0)));
    home.run(["enqueue", "-q", "--id", "new", "--queue", "default", "--priority", "100", "--", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty", "--queue", "default"]).ok();
    let names = home.run(["metrics", "--json"]).ok().json();
    let default =
        names["queues"].as_array().expect("queues").iter().find(|queue| queue["queue"] == "default");
    let default = &default.expect("the queue")["total"];
    assert_eq!(default["enqueued"], 1, "{default}");
    assert!(default["started"].as_u64() >= Some(1), "{default}");
    home.run(["doctor", "--full"]).ok();
}
