//! How commands end, and how that is recorded (FAULTS 16); timeouts; what they used.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use domain::values::signal::Signal as Named;
use serde_json::{Value, json};

use super::harness::{Home, Pool, history, is_alive, millis_between};
use crate::cli::harness::allow;

/// A folder with scripts that end in their own way, and one that is not executable.
fn home_with_scripts() -> Home {
    let home = Home::new();
    for (name, text, mode) in [
        ("die", "#!/bin/sh\necho last words >&2\nkill -TERM $$\n", 0o700),
        ("exit-137", "#!/bin/sh\nexit 137\n", 0o700),
        ("good", "#!/bin/sh\necho fine >&2\n", 0o700),
        ("plain", "#!/bin/sh\n", 0o600),
        ("no-interpreter", "#!/no/such/interpreter\n", 0o700),
    ] {
        allow(&home.file(name, text), mode);
    }
    home
}

/// What the shell itself makes of a command, in our words: outcome, exit code, signal, error.
fn told_by_shell(home: &Home, command: &str) -> [Value; 4] {
    let Output { status, stderr, .. } =
        Command::new("sh").args(["-c", command]).current_dir(home.folder()).output().expect("a shell");
    let stderr = String::from_utf8(stderr).expect("text");
    let said = stderr.lines().last().map_or(String::new(), |line| format!(": {line}"));
    match (status.code(), status.signal().and_then(Named::from_number)) {
        (Some(0), _) => [json!("success"), json!(0), Value::Null, Value::Null],
        (Some(code), _) => {
            [json!("failure"), json!(code), Value::Null, json!(format!("exit code {code}{said}"))]
        }
        (None, signal) => {
            let signal = signal.expect("a signal").to_string();
            let error = format!("killed by {signal}{said}");
            [json!("signal"), Value::Null, json!(signal), json!(error)]
        }
    }
}

#[test]
fn fault_16_a_command_ends_as_it_would_in_a_shell() {
    let home = home_with_scripts();
    // Those without anything for a shell to do are started directly, and nobody can tell.
    let commands = [
        ("no-such-program", "failure", Some(127), None),
        ("no-such-program; exit $?", "failure", Some(127), None),
        ("./no/such/program", "failure", Some(127), None),
        ("./plain", "failure", Some(126), None),
        ("./plain; exit $?", "failure", Some(126), None),
        ("/", "failure", Some(126), None),
        ("./no-interpreter", "failure", Some(127), None),
        ("./exit-137", "failure", Some(137), None),
        ("exit 137", "failure", Some(137), None),
        ("exit 255", "failure", Some(255), None),
        ("kill -KILL $$", "signal", None, Some("SIGKILL")),
        ("kill -USR1 $$", "signal", None, Some("SIGUSR1")),
        ("./good", "success", Some(0), None),
        ("./good; exit 0", "success", Some(0), None),
        ("false", "failure", Some(1), None),
        ("true", "success", Some(0), None),
        ("'", "failure", Some(2), None),
    ];
    for (at, (command, ..)) in commands.iter().enumerate() {
        home.enqueue(&format!("job-{at}"), command);
    }
    Pool::drain(&home, "--concurrency 4");
    for (at, (command, outcome, exit_code, signal)) in commands.into_iter().enumerate() {
        let job = home.show(&format!("job-{at}"));
        // One that lay in a worker's hand for too long was given back before.
        let attempt = history(&job).last().expect("it has run");
        let recorded = ["outcome", "exit_code", "signal", "error"].map(|field| attempt[field].clone());
        assert_eq!(recorded[..3], [json!(outcome), json!(exit_code), json!(signal)], "{command}");
        assert_eq!(recorded, told_by_shell(&home, command), "{command}");
        let latest = ["exit_code", "signal", "error"].map(|field| job[field].clone());
        assert_eq!(recorded[1..], latest, "{command}: the job says what its attempt says");
    }
}

#[test]
fn fault_16_a_program_that_was_killed_has_the_name_of_the_signal() {
    // Many shells would wait for it and exit with 143, and keep the signal to themselves.
    let job = home_with_scripts().ran("./die");
    assert_eq!((&job["exit_code"], &job["signal"]), (&Value::Null, &json!("SIGTERM")));
    assert_eq!(job["error"], "killed by SIGTERM: last words");
    assert_eq!(history(&job)[0]["outcome"], "signal");
}

#[test]
fn fault_16_a_folder_that_is_missing_is_named() {
    let home = Home::new();
    let file = home.file("file", "").display().to_string();
    home.enqueue_with("missing", "true", "--max-retries 0 --cwd /no/such/folder");
    home.enqueue_with("file", "true; true", &format!("--max-retries 0 --cwd {file}"));
    Pool::drain(&home, "");
    for (id, why) in [
        ("missing", "cwd /no/such/folder does not exist".to_owned()),
        ("file", format!("cwd {file} is no folder")),
    ] {
        let job = home.show(id);
        assert_eq!((&job["state"], &job["failures"]), (&json!("dead"), &json!(1)), "{id}");
        assert_eq!(job["error"], format!("could not be started: {why}"));
        let attempt = history(&job).last().expect("it has run");
        assert_eq!(
            (&attempt["outcome"], &attempt["exit_code"], &attempt["signal"]),
            (&json!("spawn_error"), &Value::Null, &Value::Null)
        );
    }
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let tree = "sleep 600 & echo $! > child; setsid sleep 600 & echo $! > daemon; echo $$ > shell; wait";
    let home = Home::after_timeout(&[], tree, "shell");
    let job = home.show("it");
    assert_eq!((&job["state"], &job["error"]), (&json!("dead"), &json!("timed out")));
    let attempt = &history(&job)[0];
    assert_eq!(
        (&attempt["outcome"], &attempt["exit_code"], &attempt["signal"]),
        (&json!("timeout"), &Value::Null, &Value::Null)
    );
    assert!(attempt["duration_ms"].as_u64() >= Some(400), "{attempt}");
    for name in ["child", "daemon", "shell"] {
        assert!(!is_alive(home.wait_for_pid(name)), "{name}");
    }
}

#[test]
fn what_an_attempt_used_is_recorded() {
    let home = Home::new();
    let job = home.ran("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    let attempt = &history(&job)[0];
    assert!(attempt["cpu_ms"].as_u64() > Some(5), "{attempt}");
    assert!(attempt["duration_ms"].as_u64() >= attempt["cpu_ms"].as_u64(), "{attempt}");
}

#[test]
fn the_memory_of_a_command_is_told_where_it_is_more_than_the_workers() {
    let home = Home::new();
    home.enqueue("small", "true");
    // The end of a pipe cannot be found without keeping what comes before it.
    home.enqueue("large", "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c");
    Pool::drain(&home, "");
    let [small, large] = ["small", "large"].map(|id| history(&home.show(id))[0]["max_rss_bytes"].clone());
    assert_eq!(small, Value::Null, "it cannot be told from the worker's own");
    assert!((200_000_000..260_000_000).contains(&large.as_u64().expect("a number")), "{large}");
}

#[test]
fn an_attempt_took_as_long_as_it_lasted() {
    let home = Home::new();
    // Short ones, of which a worker claims some ahead, and whose outcomes gather for a commit.
    let jobs: Vec<_> = (0..60).map(|at| json!({"id": format!("j{at}"), "command": "sleep 0.01"})).collect();
    home.run(["enqueue", "-q", &json!(jobs).to_string()]).ok();
    Pool::drain(&home, "");
    for at in 0..60 {
        for attempt in history(&home.show(&format!("j{at}"))) {
            let lasted = millis_between(&attempt["started_at"], &attempt["finished_at"]);
            let took = attempt["duration_ms"].as_i64().expect("a number");
            assert!((lasted - took).abs() <= 5, "{attempt}");
        }
    }
}

#[test]
fn fault_03_a_command_of_131071_bytes_runs() {
    const LONGEST: usize = 131_071;
    let home = Home::new();
    // One for a shell, and one that is started without it.
    let scripted = "echo ran > shell; : ";
    let direct = "env sh -c 'echo ran > direct' ";
    for (id, start) in [("shell", scripted), ("direct", direct)] {
        let command = format!("{start}{}", "x".repeat(LONGEST - start.len()));
        let job = json!({"id": id, "command": command, "max_retries": 0});
        home.call(["enqueue", "-q", "-"]).with_stdin(job.to_string()).run().ok();
    }
    Pool::drain(&home, "");
    for id in ["shell", "direct"] {
        let job = home.show(id);
        assert_eq!((&job["state"], &job["error"]), (&json!("completed"), &Value::Null), "{id}");
        assert_eq!(home.read(id), "ran\n");
    }
}
