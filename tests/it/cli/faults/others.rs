//! Cases 5 and 9 to 12: input that conflicts with existing jobs.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use store::sqlite::gate_path;
use sys::fs::lock::TimedLock;

use crate::cli::harness::working_home::wait_until;
use crate::cli::harness::{Home, PROGRAM, ids};

#[test]
fn fault_05_a_second_job_with_the_same_id_is_a_conflict() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--command", "first"]).ok();
    let before = home.show("a");
    let second = r#"{"id":"a","command":"second"}"#;
    home.file("jobs.jsonl", second);
    for call in [
        home.call(["enqueue", second]),
        home.call(["enqueue", "--id", "a", "--command", "second"]),
        home.call(["enqueue", r#"[{"id":"b","command":"1"},{"id":"a","command":"2"}]"#]),
        home.call(["enqueue", r#"[{"id":"c","command":"1"},{"id":"c","command":"2"}]"#]),
        home.call(["enqueue", "--file", "jobs.jsonl"]),
    ] {
        call.run().fails(4).prints("").says("there is already a job").says("--if-absent");
        assert_eq!(home.count(), 1, "only the first is there");
    }
    assert_eq!(home.show("a"), before, "the first is untouched");
}

#[test]
fn fault_05_if_absent_returns_the_existing_job() {
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--command", "first"]).ok();
    let before = home.show("a");
    let batch = r#"[{"id":"a","command":"second"},{"id":"b","command":"1"},{"id":"b","command":"2"}]"#;
    let answers = home.run(["enqueue", "--if-absent", "--json", batch]).ok().json();
    let existing: Vec<bool> =
        answers.as_array().expect("an array").iter().map(|job| job.get("existing").is_some()).collect();
    assert_eq!((ids(&answers), existing), (vec!["a", "b", "b"], vec![true, false, true]));
    assert_eq!(home.show("a"), before);
    assert_eq!(home.count(), 2);
}

#[test]
fn fault_09_a_dependency_on_itself_an_unknown_job_or_a_cycle_is_refused() {
    for (json, code, message) in [
        (r#"{"id":"a","command":"x","depends_on":["a"]}"#, 2, "job `a` cannot depend on itself"),
        (r#"{"command":"x","depends_on":["nope"]}"#, 3, "it depends on `nope`"),
        (r#"{"command":"x","depends_on":["../x"]}"#, 2, "`depends_on`"),
        (
            r#"[{"id":"b","command":"x"},{"command":"x","depends_on":["b","nope"]}]"#,
            3,
            "it depends on `nope`",
        ),
        (
            r#"[{"id":"a","command":"x","depends_on":["b"]},{"id":"b","command":"x","depends_on":["a"]}]"#,
            2,
            "waits for itself",
        ),
        (
            r#"[{"id":"t","command":"x","depends_on":["a"]},{"id":"a","command":"x","depends_on":["c"]},
                {"id":"b","command":"x","depends_on":["a"]},{"id":"c","command":"x","depends_on":["b"]}]"#,
            2,
            "waits for itself",
        ),
    ] {
        let home = Home::new();
        home.run(["enqueue", json]).fails(code).prints("").says(message);
        assert!(home.is_empty(), "{json}");
    }
    let home = Home::new();
    home.run(["enqueue", "--id", "a", "--depends-on", "a", "--", "x"]).fails(2).says("on itself");
    home.run(["enqueue", "--depends-on", "nope", "--", "x"]).fails(3);
    assert!(home.is_empty());
}

#[test]
fn fault_09_a_cycle_made_by_removing_and_enqueuing_again_is_refused_by_retry() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "y", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "x", "--depends-on", "y", "--", "true"]).ok();
    home.run(["worker", "run", "--until-empty"]).ok();
    home.run(["remove", "-q", "y"]).ok();
    home.run(["enqueue", "-q", "--id", "y", "--depends-on", "x", "--", "true"]).ok();
    home.run(["retry", "x"]).fails(4).prints("").says("it depends on job `y`, which depends on it: a cycle");
    assert_eq!((home.state_of("x").as_str(), home.state_of("y").as_str()), ("completed", "pending"));
    home.run(["worker", "run", "--until-empty"]).ok();
    home.run(["retry", "-q", "x"]).ok();
}

/// Ten lines, the seventh of which is bad.
fn ten_lines(bad: &str) -> String {
    let good = |at: usize| format!("{{\"id\":\"j{at}\",\"command\":\"true\"}}");
    let lines: Vec<String> = (1..=10).map(|at| if at == 7 { bad.to_owned() } else { good(at) }).collect();
    lines.join("\n")
}

const BAD_LINES: [(&str, &str, i32); 7] = [
    ("{", "the JSON ends too early", 2),
    ("{\"comand\":\"x\"}", "did you mean `command`?", 2),
    ("[{\"command\":\"x\"}]", "expected an object", 2),
    ("{\"command\":\"x\",\"max_retries\":1,\"max_attempts\":2}", "not both", 2),
    ("{\"id\":\"s\",\"command\":\"x\",\"depends_on\":[\"s\"]}", "cannot depend on itself", 2),
    ("{\"id\":\"j3\",\"command\":\"x\"}", "there is already a job `j3`", 4),
    ("{\"command\":\"x\",\"depends_on\":[\"nope\"]}", "it depends on `nope`", 3),
];

#[test]
fn fault_10_a_file_with_a_bad_line_7_stores_nothing_and_names_it() {
    for (bad, message, code) in BAD_LINES {
        let home = Home::new();
        home.file("jobs.jsonl", ten_lines(bad));
        let ran = home.run(["enqueue", "--file", "jobs.jsonl"]).fails(code).prints("");
        ran.says("line 7 was refused; nothing was stored").says(message);
        assert!(home.is_empty(), "{bad}");
    }
}

#[test]
fn fault_10_a_stream_stops_at_the_bad_line_and_reports_what_was_stored() {
    for (bad, message, _) in BAD_LINES {
        let home = Home::new();
        let ran = home.call(["enqueue", "-"]).with_stdin(ten_lines(bad)).run().fails(1);
        let ran = ran.says("stopped at line 7, 6 jobs were stored before it").says(message);
        assert_eq!(ran.lines(), ["j1", "j2", "j3", "j4", "j5", "j6"], "{bad}");
        assert_eq!(home.count(), 6, "{bad}");
    }
}

#[test]
fn fault_10_a_stream_whose_first_line_is_bad_stored_nothing() {
    let home = Home::new();
    home.call(["enqueue", "-"])
        .with_stdin("\n{\"comand\":\"x\"}\n")
        .run()
        .fails(2)
        .says("line 2 was refused");
    assert!(home.is_empty());
}

#[test]
fn fault_10_a_stream_with_a_cycle_stops_where_the_cycle_begins() {
    let home = Home::new();
    let lines = "{\"id\":\"ok\",\"command\":\"x\"}\n{\"id\":\"a\",\"command\":\"x\",\"depends_on\":[\"b\"]}\n\
                 {\"id\":\"b\",\"command\":\"x\",\"depends_on\":[\"a\"]}\n";
    home.call(["enqueue", "-"])
        .with_stdin(lines)
        .run()
        .fails(1)
        .prints("ok\n")
        .says("stopped at line 2, 1 job was");
    assert_eq!(home.count(), 1);
}

#[test]
fn fault_10_with_json_a_stopped_stream_prints_what_was_stored_as_an_array() {
    let home = Home::new();
    let ran = home.call(["enqueue", "--json", "-"]).with_stdin(ten_lines("{")).run().fails(1);
    assert_eq!(ids(&ran.json()).len(), 6);
    assert_eq!(ran.error_json()["exit_code"], 1);
}

#[test]
fn fault_11_an_unknown_id_is_not_found() {
    let home = Home::with_jobs(&["a"]);
    for args in [
        ["show", "nope"].as_slice(),
        &["logs", "nope"],
        &["logs", "nope", "-f"],
        &["cancel", "nope"],
        &["retry", "nope"],
        &["remove", "nope"],
        &["wait", "nope"],
        &["dlq", "show", "nope"],
        &["dlq", "retry", "nope"],
        &["dlq", "purge", "nope"],
        &["list", "--after", "nope"],
    ] {
        home.run(args).fails(3).prints("").says("there is no job `nope`");
    }
    assert_eq!(home.state_of("a"), "pending");
}

#[test]
fn fault_11_a_job_in_the_wrong_state_stays_unchanged() {
    let home = Home::new();
    home.completed_job("completed");
    home.dead_job("dead", "exit code 1");
    for id in ["pending", "cancelled"] {
        home.run(["enqueue", "-q", "--id", id, "--", "true"]).ok();
    }
    home.run(["cancel", "-q", "cancelled"]).ok();
    for (args, state) in [
        (["cancel", "completed"].as_slice(), "completed"),
        (&["cancel", "dead"], "dead"),
        (&["retry", "pending"], "pending"),
        (&["dlq", "retry", "pending"], "pending"),
        (&["dlq", "retry", "completed"], "completed"),
        (&["cancel", "cancelled"], "cancelled"),
        (&["dlq", "purge", "completed"], "completed"),
    ] {
        let id = args[args.len() - 1];
        let before = home.show(id);
        home.run(args).fails(4).prints("").says(&format!("it is {state}"));
        assert_eq!(home.show(id), before, "{args:?}");
    }
}

#[test]
fn fault_12_unknown_states_keys_and_bad_queue_names_are_refused() {
    for args in [
        ["list", "--state", "finished"].as_slice(),
        &["list", "--state", ""],
        &["config", "get", "no_such"],
        &["config", "set", "no_such", "1"],
        &["config", "unset", "no_such"],
        &["worker", "run", "--queue", "a b"],
        &["worker", "start", "--queue", ""],
        &["worker", "run", "--queue", "a,,b"],
        &["list", "--queue", "a b"],
        &["list", "--queue", "a/b"],
        &["enqueue", "--queue", "a b", "--", "x"],
        &["enqueue", "--queue", "", "--", "x"],
        &["enqueue", r#"{"command":"x","queue":"a b"}"#],
        &["enqueue", r#"{"command":"x","queue":"a:b"}"#],
        &["enqueue", "--on-dependency-failure", "wait", "--", "x"],
    ] {
        let home = Home::with_queue();
        home.run(args).fails(2).prints("");
        assert!(home.is_empty(), "{args:?}");
    }
}

#[test]
fn fault_12_the_nearest_state_key_and_field_are_offered() {
    for (args, nearest) in [
        (["list", "--state", "pendign"].as_slice(), "pending"),
        (&["config", "set", "max-retires", "1"], "max_retries"),
        (&["config", "get", "leese"], "lease"),
        (&["enqueue", r#"{"command":"x","que":"a"}"#], "queue"),
    ] {
        Home::new().run(args).fails(2).says(nearest);
    }
}

/// The exit code of every Rust program that panics, although this one has its own entry.
#[cfg(debug_assertions)] // Released builds take no migrations from tests.
#[test]
fn a_panic_is_exit_code_101() {
    let home = Home::with_jobs(&["a"]);
    let ran = home.call(["status"]).env("QUEUECTL_MIGRATIONS", "/nonexistent").run();
    assert_eq!(ran.status.code(), Some(101), "{ran}");
    assert!(ran.stderr.contains("panicked at"), "{ran}");
}

/// The wait for the gate needs a timer of the system, and a user can have only so many.
#[test]
fn a_writer_that_gets_no_timer_still_waits_for_its_turn() {
    let home = Home::with_jobs(&["a"]);
    let file =
        fs::File::options().read(true).write(true).open(gate_path(&home.database())).expect("the gate");
    let gate = TimedLock::new(file);
    assert!(gate.take_within(Duration::ZERO).expect("it is free"));
    let mut call = Command::new("prlimit");
    call.args(["--sigpending=0", PROGRAM, "--home"]).arg(home.path()).args(["enqueue", "-q", "--", "true"]);
    let mut child = call.stdin(Stdio::null()).spawn().expect("prlimit is installed");
    wait_until("it sleeps while it has the gate open, or has ended", || {
        let of_child = |file: &str| format!("/proc/{}/{file}", child.id());
        let has_ended = !fs::exists(of_child("fd")).unwrap_or(false) || fs::read_dir(of_child("fd")).is_err();
        let stat = fs::read_to_string(of_child("stat")).unwrap_or_default();
        let has_gate = fs::read_dir(of_child("fd")).is_ok_and(|mut numbers| {
            numbers.any(|number| {
                fs::read_link(number.expect("a number").path())
                    .is_ok_and(|path| path == gate_path(&home.database()))
            })
        });
        has_ended || stat.contains(") Z ") || (has_gate && stat.contains(") S "))
    });
    gate.release().expect("the gate is released");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(home.count(), 2);
}
