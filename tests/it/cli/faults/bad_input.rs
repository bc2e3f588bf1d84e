//! Cases 1 to 4 and 6: input that is not a valid job. Nothing is stored.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use serde_json::json;

use crate::cli::harness::{Call, Home, PROGRAM};

/// Asserts that each of these calls fails with this code and message, and stores nothing.
#[track_caller]
fn refused(calls: impl FnOnce(&Home) -> Vec<Call>, code: i32, message: &str) {
    let home = Home::new();
    for call in calls(&home) {
        call.run().fails(code).prints("").says(message);
        assert!(home.is_empty(), "something was stored");
    }
}

/// The same job as an argument, on a stream and in a file.
fn everywhere(home: &Home, json: &str) -> Vec<Call> {
    home.file("job.jsonl", json);
    vec![
        home.call(["enqueue", json]),
        home.call(["enqueue", &format!("[{json}]")]),
        home.call(["enqueue", "-"]).with_stdin(json),
        home.call(["enqueue", "--file", "job.jsonl"]),
    ]
}

#[test]
fn fault_01_empty_or_blank_input_is_refused() {
    refused(|home| vec![home.call(["enqueue"])], 2, "no job given");
    for blank in ["", " ", "\t\n "] {
        refused(|home| vec![home.call(["enqueue", blank])], 2, "`command` is blank");
    }
}

#[test]
fn fault_01_json_that_is_not_an_object_is_refused() {
    for value in ["null", "5", "1.5", "true", "\"echo hi\""] {
        refused(|home| everywhere(home, value).split_off(1), 2, "expected an object with a `command`");
    }
    refused(|home| vec![home.call(["enqueue", "[[]]"])], 2, "expected an object with a `command`");
}

#[test]
fn fault_01_malformed_json_is_reported_with_its_position() {
    for (json, place) in [
        ("{", "column 1: "),
        (r#"{"command":"x""#, "column 14: "),
        (r#"{"command":"x"} {"#, "column 17: "),
        (r#"{"command":'x'}"#, "column 12: "),
        (r#"{"command":"x",}"#, "column 16: "),
        ("{\n\"command\":\nx}", "line 3, column 1: "),
    ] {
        refused(|home| vec![home.call(["enqueue", json])], 2, place);
    }
}

#[test]
fn fault_02_a_command_is_required_and_must_be_text() {
    for (json, message) in [
        (json!({}), "a job needs a `command`"),
        (json!({"id": "a"}), "a job needs a `command`"),
        (json!({"command": ""}), "`command` is blank"),
        (json!({"command": " \t\n"}), "`command` is blank"),
        (json!({"command": null}), "`command`: expected a string, not null"),
        (json!({"command": 5}), "`command`: expected a string, not 5"),
        (json!({"command": ["echo", "hi"]}), "`command`: expected a string, not an array"),
        (json!({"command": {}}), "`command`: expected a string, not an object"),
    ] {
        refused(|home| everywhere(home, &json.to_string()), 2, message);
    }
    for command in ["", "  "] {
        refused(|home| vec![home.call(["enqueue", "--command", command])], 2, "`command` is blank");
    }
}

#[test]
fn fault_02_fields_of_the_wrong_type_are_named() {
    for (field, value) in [
        ("id", json!(5)),
        ("queue", json!(true)),
        ("name", json!(5)),
        ("priority", json!("highest")),
        ("priority", json!("5")),
        ("max_retries", json!("3")),
        ("max_attempts", json!([])),
        ("timeout", json!(true)),
        ("run_at", json!(1_700_000_000)),
        ("delay", json!({})),
        ("backoff", json!("exponential")),
        ("depends_on", json!("a")),
        ("on_dependency_failure", json!(1)),
        ("unique_key", json!([])),
        ("cwd", json!(7)),
        ("env", json!(["A=1"])),
        ("env", json!({"A": 1})),
        ("tags", json!("x")),
        ("tags", json!([1])),
    ] {
        let job = json!({"command": "x", field: value});
        refused(|home| everywhere(home, &job.to_string()), 2, &format!("`{field}`"));
    }
}

#[test]
fn fault_02_a_nul_byte_is_refused_in_every_string() {
    for (job, field) in [
        (json!({"command": "a\0b"}), "command"),
        (json!({"command": "x", "id": "a\0"}), "id"),
        (json!({"command": "x", "name": "a\0"}), "name"),
        (json!({"command": "x", "queue": "a\0"}), "queue"),
        (json!({"command": "x", "unique_key": "a\0"}), "unique_key"),
        (json!({"command": "x", "cwd": "/a\0"}), "cwd"),
        (json!({"command": "x", "tags": ["a\0"]}), "tags"),
        (json!({"command": "x", "env": {"A": "\0"}}), "env"),
        (json!({"command": "x", "env": {"A\0": ""}}), "env"),
        (json!({"command": "x", "depends_on": ["a\0"]}), "depends_on"),
    ] {
        refused(|home| everywhere(home, &job.to_string()), 2, &format!("`{field}`"));
    }
    let raw = b"{\"command\":\"a\0b\"}".to_vec();
    refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(raw)], 2, "line 1");
}

#[test]
fn fault_02_invalid_utf_8_is_an_error_and_not_a_panic() {
    let bad = OsString::from_vec(b"caf\xe9".to_vec());
    let text = |word: &str| OsString::from(word);
    for args in [
        vec![text("enqueue"), bad.clone()],
        vec![text("enqueue"), text("--"), text("echo"), bad.clone()],
        vec![text("enqueue"), text("--command"), bad.clone()],
        vec![text("show"), bad.clone()],
        vec![text("list"), text("--queue"), bad.clone()],
        vec![text("config"), text("set"), text("lease"), bad.clone()],
    ] {
        refused(|home| vec![home.call(&args)], 2, "UTF-8");
    }
    refused(|home| vec![home.call([&bad])], 2, "unknown command");
    let line = b"{\"command\":\"caf\xe9\"}\n".to_vec();
    refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(line)], 2, "line 1");
    refused(|home| vec![home.call([text("enqueue"), text("--file"), bad])], 2, "failed to read");
}

/// In another folder, a command could do damage.
#[test]
fn fault_02_a_working_directory_that_cannot_be_stored_is_not_replaced() {
    let home = Home::new();
    let unnamed = home.folder().join(OsString::from_vec(b"caf\xe9".to_vec()));
    fs::create_dir(&unnamed).expect("a folder");
    let vanishes = |args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"", "sh"]);
        command.args([PROGRAM, "--home"]).arg(home.path()).args(args);
        command.current_dir(home.folder()).output().expect("a shell")
    };
    for job in [r#"{"command":"rm *"}"#, r#"{"command":"rm *","cwd":"inner"}"#] {
        let ran = home.call(["enqueue", job]).at(&unnamed).run().fails(2);
        ran.prints("").says("an absolute `cwd`");
        let output = vanishes(&["enqueue", job]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("an absolute `cwd`"), "{said}");
    }
    assert!(home.is_empty());
    let absolute = r#"{"id":"a","command":"ls","cwd":"/"}"#;
    home.call(["enqueue", absolute]).at(&unnamed).run().ok().prints("a\n");
    assert!(vanishes(&["enqueue", "--id", "b", "--cwd", "/", "--", "ls"]).status.success());
    assert_eq!((&home.show("a")["cwd"], &home.show("b")["cwd"]), (&json!("/"), &json!("/")));
}

#[test]
fn fault_03_a_command_of_131072_bytes_is_refused() {
    let job = json!({"command": "x".repeat(131_072)}).to_string();
    let calls = |home: &Home| vec![home.call(["enqueue", "-"]).with_stdin(job.clone())];
    refused(calls, 2, "`command` has 131072 bytes; the kernel accepts at most 131071");
    // Umlauts count in bytes.
    let job = json!({"command": "ä".repeat(65_536)}).to_string();
    refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(job.clone())], 2, "131072 bytes");
    // Quoting can make words too long.
    let words = ["enqueue", "--", "echo", &"'".repeat(60_000)].map(OsString::from);
    refused(|home| vec![home.call(&words)], 2, "accepts at most 131071");
}

#[test]
fn fault_03_a_command_of_131071_bytes_is_accepted() {
    let longest = "x".repeat(131_071);
    let home = Home::new();
    home.call(["enqueue", "-"]).with_stdin(json!({"id": "a", "command": longest}).to_string()).run().ok();
    home.run(["enqueue", "--id", "b", "--command", &longest]).ok();
    for job in home.jobs() {
        assert_eq!(job.command, longest);
    }
    // With every byte escaped, it still fits in a line.
    let escaped = format!("{{\"id\":\"c\",\"command\":\"{}\"}}", "\\u0078".repeat(131_071));
    home.call(["enqueue", "-"]).with_stdin(escaped).run().ok().prints("c\n");
}

#[test]
fn a_variable_too_large_for_exec_is_refused() {
    let job = |bytes: usize| json!({"command": "true", "env": {"BIG": "x".repeat(bytes)}}).to_string();
    let too_long =
        "variable `BIG` of `env` has 131072 bytes including its name; the kernel accepts at most 131071";
    refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(job(131_068))], 2, too_long);
    refused(
        |home| vec![home.call(["enqueue", "-"]).with_stdin(job(131_068))],
        2,
        "read the value from a file",
    );
    let name = "N".repeat(131_072);
    let long_name = json!({"command": "true", "env": {name: ""}}).to_string();
    refused(
        |home| vec![home.call(["enqueue", "-"]).with_stdin(long_name.clone())],
        2,
        "accepts at most 131071",
    );
    Home::new().call(["enqueue", "-q", "-"]).with_stdin(job(131_067)).run().ok();
}

#[test]
fn fault_04_ids_that_could_be_paths_or_terminal_codes_are_refused() {
    let too_long = "x".repeat(129);
    for id in [
        "",
        "/",
        "a/b",
        "..",
        ".a",
        "../../etc/passwd",
        "-a",
        "_a",
        "a\nb",
        "a b",
        "\u{1b}[2J",
        "ä",
        "a\0",
        &too_long,
    ] {
        let job = json!({"command": "x", "id": id}).to_string();
        refused(|home| everywhere(home, &job), 2, "`id`: it");
        if !id.contains('\0') {
            let flag = format!("--id={id}");
            refused(|home| vec![home.call(["enqueue", &flag, "--", "x"])], 2, "--id");
            refused(
                |home| vec![home.call(["show", "--", id]), home.call(["cancel", "--", id])],
                2,
                "invalid id",
            );
        }
    }
    let home = Home::new();
    home.run(["enqueue", "--id", &"x".repeat(128), "--", "true"]).ok();
    home.run(["enqueue", "--id", "A.b_c:d-9", "--", "true"]).ok();
}

#[test]
fn fault_06_an_unknown_field_is_refused_and_the_nearest_offered() {
    for (json, message) in [
        (r#"{"command":"x","max_retires":1}"#, "unknown field `max_retires`; did you mean `max_retries`?"),
        (r#"{"comand":"x"}"#, "unknown field `comand`; did you mean `command`?"),
        (r#"{"command":"x","Priority":1}"#, "did you mean `priority`?"),
        (r#"{"command":"x","run-at":1}"#, "did you mean `run_at`?"),
        (r#"{"command":"x","colour":1}"#, "unknown field `colour`; the fields are command, id"),
        (r#"{"command":"x","":1}"#, "unknown field ``"),
        (r#"{"command":"x","state":"dead"}"#, "field `state` is printed, but cannot be given"),
        (r#"{"command":"x","backoff":{"bse":2}}"#, "did you mean `base`?"),
    ] {
        refused(|home| everywhere(home, json), 2, message);
    }
    let flag = ["enqueue", "--max-retires", "1", "--", "x"];
    refused(|home| vec![home.call(flag)], 2, "did you mean `--max-retries`?");
}

#[test]
fn fault_06_a_duplicate_key_is_refused() {
    for (json, message) in [
        (r#"{"command":"x","command":"y"}"#, "field `command` is given twice"),
        (r#"{"command":"x","id":"a","id":"a"}"#, "field `id` is given twice"),
        (r#"{"command":"x","\u0063ommand":"y"}"#, "field `command` is given twice"),
        (r#"{"command":"x","env":{"A":"1","A":"2"}}"#, "`A` is given twice"),
        (r#"{"command":"x","backoff":{"base":2,"base":3}}"#, "field `base` is given twice"),
    ] {
        refused(|home| everywhere(home, json), 2, message);
    }
}

#[test]
fn fault_06_nesting_100_000_deep_is_refused() {
    for (open, message) in [("[", "line 1"), ("{\"command\":", "line 1"), ("{\"a\":", "line 1")] {
        let deep = open.repeat(100_000);
        refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(deep.clone())], 2, message);
    }
    let deep = "[".repeat(100_000);
    refused(|home| vec![home.call(["enqueue", &deep])], 2, "invalid job");
    let deep = format!("{{\"command\":\"x\",\"env\":{}", "{\"a\":".repeat(100_000));
    refused(|home| vec![home.call(["enqueue", "-"]).with_stdin(deep.clone())], 2, "`env`");
}

#[test]
fn fault_06_100_mb_without_a_newline_are_refused_in_bounded_memory() {
    let home = Home::new();
    let sparse = fs::File::create(home.folder().join("endless")).expect("a file");
    sparse.set_len(100 << 20).expect("it is long");
    home.call(["enqueue", "--file", "endless"]).with_memory(MEMORY_KIB).run().fails(2).says(TOO_LONG);
    for start in ["", "{\"command\":\""] {
        let mut endless = start.as_bytes().to_vec();
        endless.resize(100 << 20, b' ');
        let call = home.call(["enqueue", "-"]).with_stdin(endless).with_memory(MEMORY_KIB);
        call.run().fails(2).says("line 1").says(TOO_LONG);
    }
    assert!(home.is_empty());
}

const TOO_LONG: &str = "the line is longer than 4194304 bytes";
/// Less than the size of the input. The limit counts address space, so it includes the program and its stacks.
const MEMORY_KIB: u64 = 90_000;

#[test]
fn fault_06_endless_blank_lines_are_read_in_bounded_memory() {
    let home = Home::new();
    let blank = vec![b'\n'; 2 << 20];
    home.call(["enqueue", "-"]).with_stdin(blank).with_memory(MEMORY_KIB).run().ok().prints("");
}
