//! How commands end and how that is recorded (FAULTS 16); timeouts; resource usage.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use domain::values::signal::Signal as Named;
use serde_json::{Value, json};

use crate::cli::harness::allow;
use crate::engine::harness::{Home, Pool, history, is_alive, millis_between};

/// A folder with scripts that end in different ways, and one that is not executable.
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

/// The result of the command in a plain shell, as outcome, exit code, signal and error.
fn result_in_shell(home: &Home, command: &str) -> [Value; 4] {
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
    // Commands that need no shell are started directly; the result must be the same.
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
        // An attempt that was prefetched and released may come before.
        let attempt = history(&job).last().expect("it has run");
        let recorded = ["outcome", "exit_code", "signal", "error"].map(|field| attempt[field].clone());
        assert_eq!(recorded[..3], [json!(outcome), json!(exit_code), json!(signal)], "{command}");
        assert_eq!(recorded, result_in_shell(&home, command), "{command}");
        let latest = ["exit_code", "signal", "error"].map(|field| job[field].clone());
        assert_eq!(recorded[1..], latest, "{command}: the job says what its attempt says");
    }
}

#[test]
fn fault_16_a_program_that_was_killed_is_recorded_with_its_signal() {
    // Many shells would wait for it and exit with 143, which hides the signal.
    let job = home_with_scripts().ran("./die");
    assert_eq!((&job["exit_code"], &job["signal"]), (&Value::Null, &json!("SIGTERM")));
    assert_eq!(job["error"], "killed by SIGTERM: last words");
    assert_eq!(history(&job)[0]["outcome"], "signal");
}

#[test]
fn fault_16_the_error_names_a_missing_cwd() {
    let home = Home::new();
    let [missing, file] = ["missing", "file"].map(|name| home.folder().join(name).display().to_string());
    for (id, cwd) in [("missing", &missing), ("file", &file)] {
        std::fs::create_dir(cwd).expect("a folder");
        home.enqueue_with(id, "true; true", &format!("--max-retries 0 --cwd {cwd}"));
        std::fs::remove_dir(cwd).expect("it is empty");
    }
    home.file("file", "");
    Pool::drain(&home, "");
    for (id, why) in [
        ("missing", format!("cwd {missing} does not exist")),
        ("file", format!("cwd {file} is not a directory")),
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
fn a_command_that_times_out_is_killed_with_all_its_processes() {
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
fn the_cpu_time_of_an_attempt_is_recorded() {
    let home = Home::new();
    let job = home.ran("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    let attempt = &history(&job)[0];
    assert!(attempt["cpu_ms"].as_u64() > Some(5), "{attempt}");
    assert!(attempt["duration_ms"].as_u64() >= attempt["cpu_ms"].as_u64(), "{attempt}");
}

#[test]
fn the_memory_of_a_command_is_recorded_if_it_exceeds_that_of_the_worker() {
    let home = Home::new();
    home.enqueue("small", "true");
    // `tail` must buffer its input to find the end.
    home.enqueue("large", "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c");
    Pool::drain(&home, "");
    let [small, large] = ["small", "large"].map(|id| history(&home.show(id))[0]["max_rss_bytes"].clone());
    assert_eq!(small, Value::Null, "it cannot be distinguished from the worker's own");
    assert!((200_000_000..260_000_000).contains(&large.as_u64().expect("a number")), "{large}");
}

#[test]
fn the_duration_of_an_attempt_matches_its_start_and_end() {
    let home = Home::new();
    // Short jobs, which a worker prefetches, and whose outcomes share commits.
    let jobs: Vec<_> = (0..60).map(|at| json!({"id": format!("j{at}"), "command": "sleep 0.01"})).collect();
    home.run(["enqueue", "-q", &json!(jobs).to_string()]).ok();
    Pool::drain(&home, "");
    for at in 0..60 {
        // A prefetched job that a busy worker gives back was never started.
        let job = home.show(&format!("j{at}"));
        for attempt in history(&job).iter().filter(|attempt| attempt["outcome"] != "released") {
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
    // One command for a shell, and one that is started directly.
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
