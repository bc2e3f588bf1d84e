//! `enqueue --file` and `enqueue -` with one JSON document.

use serde_json::{Value, json};

use crate::cli::harness::{Home, ids};

const PRETTY: &str = "\u{feff}[\r\n  {\r\n    \"id\": \"a\",\r\n    \"command\": \"1\",\r\n    \"depends_on\": [\"b\"]\r\n  },\r\n  {\"id\": \"b\", \"command\": \"2\"}\r\n]\r\n";

#[test]
fn a_pretty_printed_array_is_stored_as_a_whole() {
    let home = Home::new();
    home.file("jobs.json", PRETTY);
    home.run(["enqueue", "--file", "jobs.json"]).ok().prints("a\nb\n").says("no worker is running");
    let home = Home::new();
    home.call(["enqueue", "-"]).with_stdin(PRETTY).run().ok().prints("a\nb\n");
    let home = Home::new();
    let stored = home.call(["enqueue", "-f", "-", "--json"]).with_stdin(PRETTY).run().ok().json();
    assert_eq!(ids(&stored), ["a", "b"]);
}

#[test]
fn objects_over_several_lines_are_documents_and_json_lines_may_begin_with_a_mark() {
    let home = Home::new();
    home.file("one.json", "{\n  \"id\": \"a\",\n  \"command\": \"true\"\n}\n");
    home.run(["enqueue", "-f", "one.json"]).ok().prints("a\n");
    let two = "{\n\"id\":\"b\",\n\"command\":\"true\"\n}\n{\n\"id\":\"c\",\"command\":\"true\"}\n";
    home.call(["enqueue", "-"]).with_stdin(two).run().ok().prints("b\nc\n");
    home.file(
        "lines.jsonl",
        "\u{feff}{\"id\":\"d\",\"command\":\"true\"}\n\n{\"id\":\"e\",\"command\":\"true\"}\n",
    );
    home.run(["enqueue", "-f", "lines.jsonl"]).ok().prints("d\ne\n");
    let lines = "\u{feff}{\"id\":\"f\",\"command\":\"true\"}\n{\"id\":\"g\",\"command\":\"true\"}\n";
    home.call(["enqueue", "-"]).with_stdin(lines).run().ok().prints("f\ng\n");
    home.call(["enqueue", "-"]).with_stdin("[]").run().ok().prints("");
}

#[test]
fn an_object_over_several_lines_after_json_lines_is_refused_with_the_forms_that_work() {
    let home = Home::new();
    let input = "{\"id\":\"a\",\"command\":\"true\"}\n{\n  \"command\": \"true\"\n}\n";
    home.file("jobs.jsonl", input);
    home.run(["enqueue", "-f", "jobs.jsonl"])
        .fails(2)
        .says("error: line 2 was refused; nothing was stored (invalid JSON: column 1: the JSON ends too early)\n")
        .says("hint: write each job on one line; an object over several lines must come first");
}

#[test]
fn an_invalid_document_stores_nothing_and_its_error_names_the_line() {
    let home = Home::with_queue();
    for (text, message) in [
        (
            "[\n {\"command\":\"x\"},\n {\"command\":1}\n]",
            "line 3 was refused; nothing was stored (invalid job: column",
        ),
        ("{\n\"command\":\"x\",\n}", "line 3 was refused; nothing was stored (invalid JSON: column"),
        ("[{\"command\":\"x\"}", "line 1 was refused; nothing was stored (invalid JSON"),
        ("[\n{\"command\":\"x\",\"depends_on\":[\"nope\"]}]", "it depends on `nope`"),
    ] {
        home.file("jobs.json", text);
        for call in [home.call(["enqueue", "-f", "jobs.json"]), home.call(["enqueue", "-"]).with_stdin(text)]
        {
            let ran = call.run();
            assert!(matches!(ran.status.code(), Some(2 | 3)), "{ran}");
            ran.says(message);
            assert!(home.is_empty());
        }
    }
    let long = format!("[{}]", " ".repeat(17 << 20));
    home.call(["enqueue", "-"])
        .with_stdin(long)
        .run()
        .fails(2)
        .says("at most 16777216 bytes")
        .says("one job per line");
}

/// The fields that `show --json` has and `enqueue` does not take.
const READ_ONLY: [&str; 23] = [
    "number",
    "state",
    "attempts",
    "failures",
    "created_at",
    "updated_at",
    "started_at",
    "finished_at",
    "next_retry_at",
    "timeout_ms",
    "worker_id",
    "lease_until",
    "paused_at",
    "exit_code",
    "signal",
    "error",
    "reason",
    "batch",
    "schedule",
    "scheduled_for",
    "env",
    "events",
    "history",
];

/// As `show --json` prints it, without the fields that cannot be given.
fn writable(home: &Home, id: &str) -> Value {
    let mut job = home.show(id);
    let fields = job.as_object_mut().expect("an object");
    for name in READ_ONLY {
        assert!(fields.remove(name).is_some(), "{name} is shown");
    }
    job
}

#[test]
fn what_show_prints_can_be_enqueued_without_its_read_only_fields() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "plain", "--", "echo", "a b"]).ok();
    let rich = json!({"id": "rich", "name": "n", "queue": "q", "command": "true", "priority": "high", "max_retries": 1,
        "run_at": "2999-01-01T00:00:00Z", "cwd": "/", "tags": ["x"], "depends_on": ["plain"], "unique_key": "k",
        "unique_for": "1h", "backoff": {"delay": 1}, "limits": {"nice": 3}, "retry_on": [1], "no_retry_on": [2],
        "on_dependency_failure": "run"});
    home.run(["enqueue", "-q", &rich.to_string()]).ok();
    let jobs = ["plain", "rich"].map(|id| writable(&home, id));
    assert!(jobs[0].as_object().expect("an object").values().any(Value::is_null), "{}", jobs[0]);

    let other = Home::new();
    other.run(["enqueue", "-q", &jobs[0].to_string()]).ok();
    let pretty = serde_json::to_string_pretty(&jobs[1]).expect("JSON");
    other.call(["enqueue", "-q", "-"]).with_stdin(pretty).run().ok();
    assert_eq!(["plain", "rich"].map(|id| writable(&other, id)), jobs);
}
