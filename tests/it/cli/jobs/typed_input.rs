//! Input as people type it: JSON completed by flags, lost quotes, lines for the shell in one word, ignored input.

use std::fs::File;
use std::process::Stdio;

use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::working_home::WorkingHome;

#[test]
fn flags_complete_json() {
    let home = Home::new();
    home.run(["enqueue", "-q", r#"{"id":"a","command":"x"}"#, "--priority", "5", "-Q", "mail"]).ok();
    let job = home.show("a");
    assert_eq!((&job["priority"], &job["queue"], &job["command"]), (&json!(5), &json!("mail"), &json!("x")));
    home.run(["enqueue", "-q", "--id", "b", r#"{"tags":["x"]}"#, "-c", "echo hi"]).ok();
    home.run(["enqueue", "-q", "--id", "c", r#"{"tags":["x"]}"#, "--", "echo", "a b"]).ok();
    assert_eq!((&home.show("b")["command"], &home.show("b")["tags"]), (&json!("echo hi"), &json!(["x"])));
    assert_eq!(home.show("c")["command"], "echo 'a b'");
    home.run(["enqueue", "-q", r#"[{"id":"d","command":"1"},{"id":"e","command":"2"}]"#, "--tag", "y"]).ok();
    assert_eq!((&home.show("d")["tags"], &home.show("e")["tags"]), (&json!(["y"]), &json!(["y"])));
}

#[test]
fn a_field_given_twice_is_refused_by_name() {
    let home = Home::with_queue();
    let full = r#"{"id":"a","command":"x","priority":0,"tags":["t"],"max_retries":1}"#;
    for (flags, field) in [
        (&["--priority", "5"][..], "priority"),
        (&["--id", "b"], "id"),
        (&["--command", "y"], "command"),
        (&["--tag", "u"], "tags"),
        (&["--", "y"], "command"),
    ] {
        home.run(["enqueue", full].iter().chain(flags))
            .fails(2)
            .says(&format!("field `{field}` is given twice: in the JSON and as a flag"));
    }
    home.run(["enqueue", full, "--max-attempts", "2"])
        .fails(2)
        .says("`max_retries` or `max_attempts`, not both");
    home.run(["enqueue", r#"[{"command":"1"},{"command":"2"}]"#, "--id", "a"]).fails(2).says("--id");
    home.run(["enqueue", r#"{"queue":"q"}"#, "--priority", "1"]).fails(2).says("a job needs a `command`");
    assert!(home.is_empty());
}

#[test]
fn json_without_its_quotes_prints_how_to_quote_it() {
    let home = Home::with_queue();
    let hint = "put the whole JSON in single quotes";
    for args in [
        &["{command:x}"][..],
        &["{command:sleep", "2}"],
        &["{\"command\":\"a", "b\"}"],
        &["{\"command\":\"a"],
        &["[{command:x}]"],
        &["id:job1", "command:sleep 2"],
        &["command:sleep 2", "id:job1"],
    ] {
        home.run(["enqueue"].iter().chain(args)).fails(2).says(hint);
    }
    let typo = home.run(["enqueue", r#"{"command":"x",}"#]).fails(2);
    assert!(!typo.stderr.contains(hint), "its quotes are there: {typo}");
    assert!(home.is_empty());
}

#[test]
fn a_word_that_begins_like_json_is_not_a_command() {
    let home = WorkingHome::new();
    for args in [
        &["run", "{command:x}"][..],
        &["run", "{ echo a; }"],
        &["run", "[", "-f", "x", "]"],
        &["schedule", "add", "s", "--every", "1h", "{x}"],
    ] {
        home.run(args).fails(2).says("is not a command; it looks like JSON").says("--command");
    }
    assert!(home.is_empty());
    home.run(["run", "-c", "{ echo a; }"]).ok().prints("a\n");
    home.run(["run", "--", "[", "-d", "/", "]"]).ok();
}

#[test]
fn words_after_a_shell_line_are_refused_with_the_form_for_a_program() {
    let home = WorkingHome::new();
    for args in [
        &["enqueue", "/opt/my prog/x", "arg"][..],
        &["run", "/opt/my prog/x", "arg"],
        &["schedule", "add", "s", "--every", "1h", "/opt/my prog/x", "arg"],
    ] {
        home.run(args)
            .fails(2)
            .says("`/opt/my prog/x` is a shell line, so only flags may follow it")
            .says("write `-- '/opt/my prog/x' arg`");
    }
    home.run(["enqueue", "echo hi", "-p", "5", "word"]).fails(2).says("`echo hi` is a shell line");
    home.run(["enqueue", "echo hi", "--pririty", "5"])
        .fails(2)
        .says("unexpected argument '--pririty' found")
        .says("did you mean `--priority`?");
    home.run(["enqueue", "-c", "a", "b"]).fails(2).says("`b` is one command too many");
    home.run(["run", "a b", "--command", "c"]).fails(2).says("`a b` is one command too many");
    assert!(home.is_empty());
    home.run(["enqueue", "-q", "echo hi", r#"{"id":"a"}"#, "-p", "5"]).ok();
}

#[test]
fn a_shell_line_in_one_word_prints_a_hint() {
    let home = WorkingHome::new();
    let hint =
        "is one word after --, so the shell looks for a program of that name; for a shell line use --command";
    for line in ["make && make test", "ls|wc", "echo >out", "./no such program"] {
        home.run(["enqueue", "--", line]).ok().says(&format!("hint: `{line}` {hint}"));
    }
    home.run(["schedule", "add", "s", "--every", "1h", "--", "ls | wc"]).ok().says(hint);
    let ran = home.run(["run", "--", "echo hi"]);
    assert_eq!(ran.status.code(), Some(127), "{ran}");
    ran.says(hint);
    let program = home.file("my program", "#!/bin/sh\necho ran\n");
    crate::cli::harness::allow(&program, 0o755);
    for ran in [
        home.run(["enqueue", "--", "./my program"]),
        home.run(["enqueue", "--", "make", "a b"]),
        home.run(["enqueue", "--", "make"]),
        home.run(["enqueue", "make && make test"]),
    ] {
        assert!(!ran.ok().stderr.contains("one word"));
    }
}

#[test]
fn ignored_input_is_reported_only_if_there_is_some() {
    let home = WorkingHome::new();
    let hint = "the command does not get the input of queuectl";
    home.call(["run", "--", "cat"]).with_stdin("data\n").run().ok().prints("").says(hint);
    home.call(["run", "-q", "--", "cat"]).with_stdin("data\n").run().ok().says_nothing();
    home.call(["enqueue", "--", "cat"]).with_stdin("data\n").run().ok().says(hint).says("--stdin");
    home.call(["run", "--each", "echo", ":::", "a"]).with_stdin("data\n").run().ok().says(hint);
    home.call(["run", "--", "cat"]).run().ok().says_nothing();
    let data = home.file("data", "one\ntwo\n");
    let run = |line: &str| {
        let end = if line.ends_with(" do") { "; done" } else { "" };
        let script = format!("{line} \"$@\"{end}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, "sh", crate::cli::harness::PROGRAM]);
        let call = home.call(["run", "--", "true"]).through(command);
        let output =
            call.into_command().stdin(File::open(&data).expect("it opens")).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(run("exec").contains(hint));
    assert_eq!(run("read line; exec"), "", "the shell reads the file");
    assert_eq!(run("cat | while read line; do"), "", "a loop reads the pipe");
    let null =
        home.call(["run", "--", "true"]).into_command().stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&null.stderr), "");
}

#[test]
fn errors_are_in_plain_words() {
    let home = Home::with_queue();
    for (args, says) in [
        (
            &["enqueue", "--backoff", "fixed", "true"][..],
            r#"write it as JSON, such as {"strategy":"fixed","delay":"5s"}"#,
        ),
        (&["enqueue", "--backoff", "{delay:1}", "true"], "the name of a field must be in double quotes"),
        (&["enqueue", "--file", "absent"], "No such file or directory"),
        (&["enqueue", r#"{"command":"x","tags":"a"}"#], "`tags`: expected"),
        (&["enqueue", "--priority", "highest", "true"], "or low, normal, high or urgent"),
        (&["enqueue", "{"], "the JSON ends too early"),
        (
            &["enqueue", r#"{"command":"a"}"#, r#"{"command":"b"}"#],
            r#"write '[{"command":"a"},{"command":"b"}]'"#,
        ),
        (
            &["enqueue", r#"{"command":"a","timeout_ms":5}"#],
            "`timeout_ms` is printed, but cannot be given; give `timeout`",
        ),
        (&["enqueue", r#"{"command":"a","state":"dead"}"#], "field `state` is printed, but cannot be given"),
        (&["enqueue", "--in", "5", "true"], "use --delay"),
        (&["run", "--detach", "true"], "`queuectl enqueue COMMAND`, which does not wait"),
        (&["list", "--failed"], "use --state"),
        (&["list", "--state", "runing"], "did you mean `running`?"),
        (&["list", "--state", "xyzzy"], "running, done, queued"),
        (&["import", "absent"], "No such file or directory"),
    ] {
        let ran = home.run(args).fails(2).says(says);
        for rust in ["os error", "at line", "EOF", "ident", "invalid digit", "sequence", "invalid type"] {
            assert!(!ran.stderr.contains(rust), "{rust}: {ran}");
        }
    }
}
