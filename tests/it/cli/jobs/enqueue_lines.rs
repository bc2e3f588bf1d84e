//! `enqueue --file` and `enqueue -`: JSON lines.

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::{Home, ids};

const TWO: &str = "{\"id\":\"a\",\"command\":\"1\"}\n{\"id\":\"b\",\"command\":\"2\"}\n";

#[test]
fn a_file_a_stream_and_a_dash_as_file_do_the_same() {
    for args in
        [["enqueue", "--file", "jobs.jsonl"].as_slice(), &["enqueue", "-"], &["enqueue", "--file", "-"]]
    {
        let home = Home::new();
        home.file("jobs.jsonl", TWO);
        home.call(args).with_stdin(TWO).run().ok().prints("a\nb\n").says("no worker is running");
        assert_eq!(home.count(), 2, "{args:?}");
    }
}

#[test]
fn empty_input_prints_no_hint() {
    for args in [
        ["enqueue", "-"].as_slice(),
        &["enqueue", "--file", "jobs.jsonl"],
        &["enqueue", "--each", "-", "--", "echo", "{}"],
        &["enqueue", "[]"],
    ] {
        let home = Home::with_queue();
        home.file("jobs.jsonl", "");
        home.call(args).with_stdin("").run().ok().prints("").says_nothing();
        assert!(home.is_empty(), "{args:?}");
    }
    let home = Home::with_jobs(&["a"]);
    let job = "{\"id\":\"a\",\"command\":\"1\"}\n";
    home.call(["enqueue", "--if-absent", "-"])
        .with_stdin(job)
        .run()
        .ok()
        .prints("a\n")
        .says("no worker is running");
}

#[test]
fn json_is_one_array() {
    for (args, stdin) in
        [(["enqueue", "--json", "-"].as_slice(), TWO), (&["enqueue", "--json", "--file", "jobs.jsonl"], "")]
    {
        let home = Home::new();
        home.file("jobs.jsonl", TWO);
        assert_eq!(ids(&home.call(args).with_stdin(stdin).run().ok().json()), ["a", "b"], "{args:?}");
    }
    Home::new().call(["enqueue", "--json", "-"]).run().ok().prints("[]\n");
}

#[test]
fn blank_lines_carriage_returns_and_a_missing_last_newline_are_accepted() {
    let home = Home::new();
    let lines = "\n{\"id\":\"a\",\"command\":\"1\"}\r\n   \n\n{\"id\":\"b\",\"command\":\"2\"}";
    home.call(["enqueue", "-"]).with_stdin(lines).run().ok().prints("a\nb\n");
}

#[test]
fn empty_input_enqueues_nothing() {
    let home = Home::new();
    home.file("empty", "");
    home.run(["enqueue", "-"]).ok().prints("");
    home.run(["enqueue", "--file", "empty"]).ok().prints("");
    assert!(home.is_empty());
}

#[test]
fn quiet_also_applies_to_lines() {
    let home = Home::new();
    home.call(["enqueue", "-q", "-"]).with_stdin(TWO).run().ok().prints("").says_nothing();
    assert_eq!(home.count(), 2);
}

#[test]
fn a_line_may_depend_on_an_earlier_one() {
    let home = Home::new();
    let lines = "{\"id\":\"a\",\"command\":\"1\"}\n{\"id\":\"b\",\"command\":\"2\",\"depends_on\":[\"a\"]}\n";
    home.file("jobs.jsonl", lines);
    home.run(["enqueue", "--file", "jobs.jsonl"]).ok();
    assert_eq!(ids(&home.run(["list", "--state", "blocked", "--json"]).ok().json()), ["b"]);
}

#[test]
fn if_absent_makes_a_file_repeatable() {
    let home = Home::new();
    home.file("jobs.jsonl", TWO);
    for _ in 0..2 {
        home.run(["enqueue", "--file", "jobs.jsonl", "--if-absent"]).ok().prints("a\nb\n");
    }
    assert_eq!(home.count(), 2);
    let again = home.run(["enqueue", "--file", "jobs.jsonl", "--if-absent", "--json"]).ok().json();
    assert_eq!(again[0]["existing"], true);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let home = Home::new();
    home.run(["enqueue", "--file", "nope.jsonl"]).fails(2).says("failed to read `nope.jsonl`");
    home.run(["enqueue", "--file", "."]).fails(2).says("failed to read `.`");
    assert!(home.is_empty());
}

#[test]
fn more_lines_than_one_chunk_holds_keep_their_order() {
    let home = Home::new();
    let line = |at: usize| format!("{{\"id\":\"j{at}\",\"command\":\"true\"}}");
    let lines: Vec<String> = (0..10_500).map(line).collect();
    let ran = home.call(["enqueue", "-"]).with_stdin(lines.join("\n")).run().ok();
    let expected: Vec<String> = (0..10_500).map(|at| format!("j{at}")).collect();
    assert_eq!(ran.lines(), expected);
    assert_eq!(home.count(), 10_500);
}

#[test]
fn a_stream_accepts_dependencies_on_earlier_lines_only() {
    let home = Home::new();
    let forward =
        "{\"id\":\"a\",\"command\":\"x\",\"depends_on\":[\"b\"]}\n{\"id\":\"b\",\"command\":\"x\"}\n";
    let refused = home.call(["enqueue", "-"]).with_stdin(forward).run().fails(2);
    refused.says("it depends on `b`").says("hint: a line can depend on earlier lines");
    home.file("forward.jsonl", forward);
    let refused = home.run(["enqueue", "--file", "forward.jsonl"]).fails(3);
    refused.says("line 1").says("it depends on `b`").says("hint: a line can depend on earlier lines");
    assert!(home.is_empty());
    let backward =
        "{\"id\":\"b\",\"command\":\"x\"}\n{\"id\":\"a\",\"command\":\"x\",\"depends_on\":[\"b\"]}\n";
    home.call(["enqueue", "-"]).with_stdin(backward).run().ok().prints("b\na\n");
}

#[test]
fn fault_10_a_stream_that_stored_nothing_exits_as_bad_input() {
    let home = Home::with_jobs(&["a"]);
    let taken = "{\"id\":\"a\",\"command\":\"x\"}\n";
    home.call(["enqueue", "-"])
        .with_stdin(taken)
        .run()
        .fails(2)
        .says("line 1 was refused; nothing was stored");
    let second = format!("{{\"command\":\"x\"}}\n{taken}");
    home.call(["enqueue", "-"]).with_stdin(second).run().fails(1).says("stopped at line 2, 1 job was stored");
}

#[test]
fn fault_10_an_existing_job_is_not_counted_as_stored() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "-q", "{\"command\":\"x\",\"unique_key\":\"k\"}"]).ok();
    let known = "{\"id\":\"a\",\"command\":\"x\"}\n{\"command\":\"x\",\"unique_key\":\"k\"}\n";
    let bad = "{\"command\":1}\n";
    let args = ["enqueue", "--if-absent", "-"];
    let ran = home.call(args).with_stdin(format!("{known}{bad}")).run().fails(2);
    ran.says("line 3 was refused; nothing was stored");
    let new = "{\"id\":\"b\",\"command\":\"x\"}\n";
    let ran = home.call(args).with_stdin(format!("{known}{new}{bad}")).run().fails(1);
    ran.says("stopped at line 4, 1 job was stored before it");
    assert_eq!(home.count(), 3);
}

#[test]
fn a_terminal_shows_how_many_jobs_already_existed() {
    let home = Home::with_jobs(&["a"]);
    home.file("jobs.jsonl", TWO);
    let call = home.call(["enqueue", "--if-absent", "--file", "jobs.jsonl"]);
    let seen = on_terminal(call.into_command(), 100, "");
    assert!(seen.screen.contains("1 job enqueued"), "{}", seen.screen);
    assert!(seen.screen.contains("1 job already existed"), "{}", seen.screen);
}
