//! Traces: from the caller to the job, to its attempts, and into `traces.jsonl`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cli::harness::Home;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// Prints the variables of the trace.
const PRINT: &str = "echo ${TRACEPARENT-none} ${TRACESTATE-none} ${BAGGAGE-none}";

fn parent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

fn enqueue(home: &Home, id: &str, variables: &[(&str, &str)]) {
    let words = ["enqueue", "-q", "--max-retries", "0", "--id", id, "--command", PRINT];
    let call = variables.iter().fold(home.call(words), |call, (name, value)| call.env(name, *value));
    call.run().ok();
}

fn printed(home: &Home, id: &str) -> Vec<String> {
    let shown = home.run(["logs", id]).ok().stdout;
    shown.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_command_continues_the_trace_of_its_caller_below_a_span_of_its_own() {
    let home = Home::new();
    let state = [("TRACEPARENT", parent().leak() as &str), ("TRACESTATE", "a=b"), ("BAGGAGE", "k=v")];
    enqueue(&home, "traced", &state);
    enqueue(&home, "plain", &[]);
    enqueue(&home, "broken", &[("TRACEPARENT", "00-7-7-01"), ("TRACESTATE", "a=b")]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let traced = printed(&home, "traced");
    let fields: Vec<&str> = traced[0].split('-').collect();
    assert_eq!((fields[1], fields[3]), (TRACE, "01"), "{traced:?}");
    assert!(fields[2].len() == 16 && fields[2] != SPAN, "{traced:?}");
    assert_eq!(traced[1..], ["a=b", "k=v"]);
    for id in ["plain", "broken"] {
        assert_eq!(printed(&home, id), ["none"; 3], "{id}");
    }
    home.run(["retry", "traced", "--yes"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_ne!(printed(&home, "traced")[0], traced[0], "each attempt is a span");
    assert!(!home.path().join("traces.jsonl").exists());
}

#[test]
fn a_variable_that_the_job_names_stays() {
    let home = Home::new();
    let words = ["enqueue", "-q", "--id", "a", "--env", "TRACEPARENT=mine", "--command", PRINT];
    home.call(words).env("TRACEPARENT", parent()).run().ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(printed(&home, "a")[0], "mine");
}

#[test]
fn the_environment_is_stored_once_for_many_traces() {
    let home = Home::new();
    for number in 1..=3 {
        let parent = format!("00-{TRACE}-{number:016x}-01");
        enqueue(&home, &format!("j{number}"), &[("TRACEPARENT", &parent)]);
    }
    let exported = home.run(["export"]).ok().stdout;
    let environments = exported.lines().filter(|line| line.contains("\"environment\"")).count();
    assert!(environments <= 4 && exported.contains(&format!("00-{TRACE}-0000000000000002-01")), "{exported}");
}

/// The spans of all lines, by name and in order.
fn spans(home: &Home) -> Vec<Value> {
    let text = fs::read_to_string(home.path().join("traces.jsonl")).expect("traces");
    let line = |line: &str| -> Value { serde_json::from_str(line).expect("each line is JSON") };
    text.lines()
        .filter_map(|text| line(text)["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned())
        .flatten()
        .collect()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let found = span["attributes"].as_array().expect("attributes").iter().find(|known| known["key"] == key);
    found.map_or(&Value::Null, |known| &known["value"])
}

#[test]
fn a_worker_records_attempts_as_spans() {
    let home = Home::new();
    home.run(["config", "set", "traces", "file"]).ok();
    enqueue(&home, "traced", &[("TRACEPARENT", &parent())]);
    let unsampled = format!("00-{TRACE}-{SPAN}-00");
    enqueue(&home, "unsampled", &[("TRACEPARENT", &unsampled)]);
    home.run([
        "enqueue",
        "-q",
        "--id",
        "bad",
        "--max-retries",
        "0",
        "--queue",
        "mail",
        "--command",
        "exit 3",
    ])
    .ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let spans = spans(&home);
    let of = |id: &str, name: &str| -> Value {
        let is_it = |span: &&Value| {
            span["name"] == name && attribute(span, "messaging.message.id")["stringValue"] == id
        };
        spans.iter().find(is_it).unwrap_or_else(|| panic!("no span {name} of {id}: {spans:#?}")).clone()
    };
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let (send, process) = (of("traced", "send default"), of("traced", "process default"));
    assert_eq!((&send["traceId"], &send["parentSpanId"]), (&json!(TRACE), &json!(SPAN)));
    assert_eq!((&process["traceId"], &process["parentSpanId"]), (&json!(TRACE), &send["spanId"]));
    assert_eq!(process["links"][0]["spanId"], send["spanId"]);
    assert_eq!(printed(&home, "traced")[0].split('-').nth(2), process["spanId"].as_str());
    assert!(process["status"].is_null() && attribute(&process, "error.type").is_null(), "{process:#}");
    let bad = of("bad", "process mail");
    assert_eq!(attribute(&bad, "process.exit.code"), &json!({ "intValue": "3" }));
    assert_eq!(attribute(&bad, "error.type")["stringValue"], "failure");
    assert_eq!(attribute(&bad, "messaging.system")["stringValue"], "queuectl");
    assert_eq!(bad["status"]["code"], 2);
    assert_ne!(bad["traceId"], TRACE);
    assert!(bad["startTimeUnixNano"].as_str() <= bad["endTimeUnixNano"].as_str(), "{bad:#}");
    let mode = home.path().join("traces.jsonl").metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_job_completes_where_no_trace_can_be_written() {
    let home = Home::new();
    home.run(["config", "set", "traces", "file"]).ok();
    fs::create_dir(home.path().join("traces.jsonl")).expect("a folder in its place");
    enqueue(&home, "a", &[]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(home.run(["show", "a", "--json"]).ok().json()["state"], "completed");
    home.run(["config", "set", "traces", "on"]).fails(2).says("off or file");
}
