//! `worker start`: workers in the background, up when it returns, without the caller's descriptors.

use std::process::{Command, Stdio};

use crate::cli::harness::PROGRAM;
use crate::engine::harness::{Home, Pool, end_of};

/// How many workers are listed.
fn listed(home: &Home) -> usize {
    home.run(["worker", "list", "--json"]).ok().json().as_array().expect("an array").len()
}

#[test]
fn fault_31_workers_are_up_when_start_returns_and_starting_again_adds() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    home.run(["worker", "start", "--count", "2", "--concurrency", "3"]).ok().says("2 workers started");
    assert_eq!(listed(&home), 2);
    home.run(["worker", "start"]).ok().prints("").says("1 worker started");
    let workers = home.workers();
    let mut slots: Vec<u32> = workers.iter().map(|worker| worker.concurrency).collect();
    slots.sort_unstable();
    assert_eq!(slots, [1, 3, 3]);
    home.enqueue("it", "true");
    home.wait_for("it", "completed");
}

#[test]
fn start_keeps_no_descriptor_of_its_caller_open() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    for script in ["\"$@\" 2>&1 | cat", "\"$@\" 2>&1 7>&1 8>&1 9>&2 | cat", "said=$(\"$@\" 2>&1 3>&1 4>&1)"] {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", PROGRAM, "--home"]).arg(home.path()).args(["worker", "start"]);
        let status = end_of(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a shell"));
        assert!(status.success(), "{script}");
    }
    assert_eq!(listed(&home), 3);
}

#[test]
fn a_supervisor_takes_no_descriptor_that_was_not_passed_to_it_as_its_report_pipe() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    let script = "printf x | \"$@\" 3>\"$0\"";
    for verb in [&["__supervisor"][..], &["__worker", "--id", "w", "--supervisor-pid", "1"]] {
        let file = home.file("of-the-caller", "");
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(&file).arg(PROGRAM).arg("--home").arg(home.path()).args(verb);
        let status = end_of(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell"));
        assert_eq!(status.code(), Some(2), "{verb:?}");
        assert_eq!(std::fs::read_to_string(file).expect("it is there"), "", "{verb:?}");
    }
}

#[test]
fn start_fails_if_the_folder_of_workers_cannot_be_created() {
    let home = Home::with_jobs(&["a"]);
    home.file("home/workers", "a file instead of the folder");
    let _pool = Pool::of(&home);
    home.run(["worker", "start"]).fails(1).says("the workers could not be started");
    assert_eq!(listed(&home), 0);
}

#[test]
fn fault_12_an_invalid_number_of_workers_is_refused() {
    let home = Home::new();
    let _pool = Pool::of(&home);
    for verb in ["start", "run"] {
        for flag in ["--count", "--concurrency"] {
            for number in ["0", "-1", "100000", "1.5", "many", ""] {
                home.run(["worker", verb, &format!("{flag}={number}")]).fails(2);
            }
        }
    }
    assert!(!home.path().join("workers").exists(), "nothing was started");
}

#[test]
fn workers_keep_running_when_their_stderr_is_closed() {
    let home = Home::new();
    for id in ["one", "two", "three"] {
        home.enqueue(id, "true");
    }
    let mut command = home.call(["worker", "run", "--until-empty"]).into_command();
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stderr.take());
    assert!(end_of(child).success());
    assert_eq!(home.state_of("three"), "completed");
}
