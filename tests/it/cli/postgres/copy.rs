//! `store copy`: a queue that moves from a file to a server, and back.

use serde_json::Value;

use super::Machine;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::{Home, RunResult};
use crate::engine::harness::Pool;
use crate::store::fixture::schema::Schema;

/// Runs the program on the queue in the file of a home.
#[track_caller]
fn run(home: &Home, words: &str) -> RunResult {
    home.run(words.split(' '))
}

/// A home with a job in every state, and one of everything else.
fn full_home() -> Home {
    let home = Home::new();
    run(&home, "config set max_retries 0").ok();
    run(&home, "enqueue -q --id removed -- true").ok();
    run(&home, "remove removed").ok();
    home.call(["enqueue", "-q", "--id", "long", "--tag", "t", "-c", "seq 30000; echo $MINE"])
        .env("MINE", "captured")
        .run()
        .ok();
    home.run(["enqueue", "-q", "--id", "short", "--batch", "some", "-c", "echo out; echo err >&2"]).ok();
    run(&home, "enqueue -q --id dead -- false").ok();
    let failing = r#"{"id":"failed","command":"false","max_retries":3,"backoff":{"delay":"1h","max":"2h"}}"#;
    home.run(["enqueue", "-q", failing]).ok();
    let pool = Pool::run(&home, "");
    for (id, state) in [("long", "completed"), ("short", "completed"), ("dead", "dead"), ("failed", "failed")]
    {
        home.wait_for(id, state);
    }
    run(&home, "worker stop").ok();
    pool.ends_well();
    run(&home, "enqueue -q --id cancelled -- true").ok();
    run(&home, "cancel cancelled").ok();
    run(&home, "enqueue -q --id held -- true").ok();
    let worker = TestWorker::for_job(&home, "w-gone", "held");
    worker.claim_job("held");
    drop(worker);
    run(&home, "enqueue -q --id later --delay 1h --unique-key k --env A=1 -- true").ok();
    run(&home, "enqueue -q --id blocked --depends-on later -Q other --priority 7 -- true").ok();
    run(&home, "queue set other --concurrency 2 --rate 5/m").ok();
    run(&home, "queue pause other --reason why").ok();
    run(&home, "schedule add nightly --cron @daily -- true").ok();
    run(&home, "hook add told --on dead -- true").ok();
    home
}

/// The lines of an export but for those about the move itself, and for log files, whose division differs.
fn lines(exported: &str) -> Vec<Value> {
    let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let is_kept = |line: &Value| {
        line["kind"] != "log" && !["import", "move"].iter().any(|event| line["event"] == *event)
    };
    lines.filter(is_kept).collect()
}

fn numbers(listed: &Value) -> Vec<(i64, String)> {
    let jobs = listed.as_array().expect("a list").iter();
    let number = |job: &Value| (job["number"].as_i64().expect("a number"), job["id"].to_string());
    let mut numbers: Vec<(i64, String)> = jobs.map(number).collect();
    numbers.sort();
    numbers
}

#[test]
fn a_whole_queue_moves_to_a_server_and_back() {
    let schema = Schema::new();
    let (home, far) = (full_home(), Machine::new(&schema, "far"));
    let url = schema.address.to_string();
    let before = lines(&run(&home, "export").ok().stdout);
    let listed = numbers(&run(&home, "list --json").ok().json());
    let (logs, short) = (run(&home, "logs long").ok().stdout, run(&home, "logs short").ok().stdout);
    assert!(logs.ends_with("30000\ncaptured\n"));
    let copied = home.run(["store", "copy", "--json", "home", &url]).ok().json();
    assert_eq!((&copied["to"], &copied["jobs"]), (&url.as_str().into(), &8.into()), "{copied}");

    assert_eq!(numbers(&far.run("list --json").ok().json()), listed, "jobs keep their numbers");
    assert_eq!(far.run("logs long").ok().stdout, logs);
    assert_eq!(far.run("logs long --tail 1").ok().stdout, "captured\n");
    assert_eq!(far.run("logs short").ok().stdout, short);
    let held = far.show("held");
    assert_eq!((&held["state"], &held["history"][0]["outcome"]), (&"pending".into(), &"lost".into()));
    let there = lines(&far.run("export").ok().stdout);
    let but_held = |lines: &[Value]| -> Vec<Value> {
        lines.iter().filter(|line| line["id"] != "held").cloned().collect()
    };
    assert_same_lines(&but_held(&before), &but_held(&there));

    let back = Home::new();
    back.run(["store", "copy", &url, "home"]).ok().prints(&format!("{}\n", back.database().display()));
    assert_same_lines(&there, &lines(&run(&back, "export").ok().stdout));
    assert_eq!(numbers(&run(&back, "list --json").ok().json()), listed);
    assert_eq!(run(&back, "logs long").ok().stdout, logs);
    run(&back, "enqueue -q --id next -- true").ok();
    assert_eq!(back.show("next")["number"], 10, "no number is used again");
    let _pool = Pool::run(&back, "");
    back.wait_for("held", "completed");
}

/// Compares line by line, so that a failure names the first difference.
#[track_caller]
fn assert_same_lines(expected: &[Value], found: &[Value]) {
    for (expected, found) in expected.iter().zip(found) {
        assert_eq!(expected, found);
    }
    assert_eq!(expected.len(), found.len());
}

#[test]
fn a_queue_that_has_moved_says_where_and_can_be_read() {
    let schema = Schema::new();
    let home = Home::with_jobs(&["a"]);
    let shown = schema.address.to_string();
    let url = shown.replacen("queuectl@", "queuectl:S3cret@", 1);
    home.run(["store", "copy", "home", &url])
        .ok()
        .says("can see the arguments")
        .prints(&format!("{shown}\n"));
    let moved = format!("this queue has moved to `{shown}`");
    for words in [
        "enqueue -- true",
        "cancel a",
        "queue pause default",
        "config set max_retries 1",
        "worker start",
        "worker run",
    ] {
        let refused = run(&home, words).fails(5).says(&moved).says("QUEUECTL_STORE");
        assert!(!refused.stderr.contains("S3cret"), "{refused}");
    }
    for words in ["list", "show a", "status", "export", "config list"] {
        let read = run(&home, words).ok().says(&moved);
        assert!(!read.stderr.contains("S3cret"), "{read}");
    }
    assert_eq!(run(&home, "cancel a --json").fails(5).stderr.matches("moved to").count(), 2);
    home.run(["store", "copy", "home", &url]).fails(5).says(&moved);
    assert_eq!(home.state_of("a"), "pending", "nothing changed");
}

#[test]
fn a_copy_needs_an_empty_store_and_no_workers() {
    let schema = Schema::new();
    let (home, far) = (Home::with_jobs(&["a"]), Machine::new(&schema, "far"));
    let url = schema.address.to_string();
    far.enqueue("taken", "true");
    home.run(["store", "copy", "home", &url]).fails(4).says("is not empty: it has jobs").says("schema=NAME");
    far.run("remove taken").ok();
    far.run("config set max_retries 1").ok();
    home.run(["store", "copy", "home", &url]).fails(4).says("is not empty: it has settings");
    far.run("config unset max_retries").ok();
    home.run(["store", "copy", "nowhere", &url]).fails(3);
    home.run(["store", "copy", "home", "home/queue.db"]).fails(2).says("onto itself");
    home.run(["store", "copy", "home"]).fails(2);
    let _pool = Pool::start(&home, "");
    let worker =
        home.run(["worker", "list", "--json"]).ok().json()[0]["id"].as_str().expect("an id").to_owned();
    home.run(["store", "copy", "home", &url]).fails(4).says(&worker).says("--wait stops them first");
    home.run(["store", "copy", "--wait", "home", &url]).ok();
    far.run("show a").ok();
}

#[test]
fn a_copy_that_dies_leaves_one_store_in_use() {
    for (place, is_moved) in [
        ("receive.before_commit", false),
        ("receive.after_commit", false),
        ("copy.before_logs", false),
        ("move_away.before_commit", false),
        ("move_away.after_commit", true),
        ("copy.before_end", true),
    ] {
        let schema = Schema::new();
        let (home, far) = (Home::with_jobs(&["a"]), Machine::new(&schema, "far"));
        let url = schema.address.to_string();
        let copy = ["store", "copy", "home", &url];
        let died = home.call(copy).env("QUEUECTL_FAILPOINT", place).run();
        assert_eq!(died.status.code(), None, "{place}: {died}");
        let has_arrived = place != "receive.before_commit";
        let there = far.call(&["enqueue", "-q", "--if-absent", "--id", "a", "--", "true"]).run();
        if has_arrived {
            there.fails(5).says("unfinished copy of").says("run the same `queuectl store copy` again");
        } else {
            there.ok();
            far.run("remove a").ok();
        }
        if is_moved {
            run(&home, "enqueue -- true").fails(5).says("has moved to");
            home.run(copy).ok();
            far.run("enqueue -q -- true").ok();
            continue;
        }
        run(&home, "enqueue -q --id b -- true").ok();
        if has_arrived {
            let refused = home.run(copy).fails(4).says("the old store is complete").says("drop schema");
            let (_, rest) = refused.stderr.split_once("the SQL `").expect("the statement");
            schema.session().run(rest.split('`').next().expect("its end"));
        }
        home.run(copy).ok();
        assert_eq!(far.run("list --json").ok().json().as_array().map(Vec::len), Some(2), "{place}");
    }
}
