//! `run` in a pipe: the command's output and exit code pass through unchanged.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};

use domain::job::life::StateName;
use domain::job::outcome::Outcome;
use domain::values::name::QueueName;
use rustix::process::Signal;
use serde_json::{Value, json};
use store::Pause;

use crate::cli::harness::allow;
use crate::cli::harness::background::{Background, end_of};
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome, wait_until};

const QUICK_RETRY: [&str; 2] = ["--backoff", r#"{"strategy":"fixed","delay":"1ms"}"#];

/// Runs a command line of `sh`, and checks its exit code.
#[track_caller]
fn run(home: &WorkingHome, args: &[&str], command: &str, code: i32) -> Output {
    let args = ["run", "--command", command].into_iter().chain(args.iter().copied());
    let output = home.call(args).into_command().stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(code), "`{command}`: {output:?}");
    output
}

/// `run` in the background, with a job called `a`.
fn start(home: &WorkingHome, args: &[&str], command: &str) -> Background {
    let args = ["run", "--id", "a", "--command", command].into_iter().chain(args.iter().copied());
    Background::start(home.call(args))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

#[test]
fn output_and_exit_code_are_those_of_the_command() {
    let home = WorkingHome::new();
    let output = run(&home, &["--id", "a"], "echo out; echo err >&2; exit 7", 7);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("out\n", "err\n"));
    let job = home.show("a");
    assert_eq!(
        (&job["state"], &job["max_retries"], &job["exit_code"]),
        (&json!("dead"), &json!(0), &json!(7))
    );
    home.wait_until_deserted();

    let ran = home.run(["run", "--", "printf", "%s|", "a b", "$HOME"]);
    ran.ok().prints("a b|$HOME|").says_nothing();
    assert_eq!(home.jobs()[0].life.state.name(), StateName::Completed);
    home.wait_until_deserted();
}

#[test]
fn output_is_passed_through_unchanged() {
    let home = WorkingHome::new();
    let output = run(&home, &[], r"printf '\000\377\033[31m\r\n\303'; printf '\300\r' >&2", 0);
    assert_eq!(output.stdout, b"\x00\xff\x1b[31m\r\n\xc3");
    assert_eq!(output.stderr, b"\xc0\r");
    let output = run(&home, &[], "seq 200000", 0);
    let numbers: Vec<u32> =
        text(&output.stdout).lines().map(|line| line.parse().expect("a number")).collect();
    assert!(numbers.iter().copied().eq(1..=200_000), "{} numbers", numbers.len());
}

#[test]
fn exit_codes_are_those_of_a_shell() {
    let home = WorkingHome::new();
    home.run(["worker", "start"]).ok();
    let script = home.file("script", "#!/bin/sh\n");
    allow(&script, 0o644);
    for (command, code) in [
        ("true", 0),
        ("exit 1", 1),
        ("exit 255", 255),
        ("exit 137", 137),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("no-such-command-at-all", 127),
        ("./script", 126),
    ] {
        run(&home, &[], command, code);
    }
}

#[test]
fn exceeding_a_limit_is_reported() {
    let home = WorkingHome::new();
    home.run(["worker", "start"]).ok();
    let args = ["run", "--limits", "pids=2", "--command", "sleep 60 & sleep 60 & sleep 60 & wait"];
    let ran = home.run(args);
    assert!(!ran.status.success());
    ran.says("had more processes and threads than its limit of 2");
}

#[test]
fn an_end_not_caused_by_the_command_is_an_error() {
    let home = WorkingHome::new();
    home.run(["worker", "start"]).ok();
    home.run(["run", "--id", "done", "--", "true"]).ok();
    for (args, error) in [
        (["--timeout", "50ms"].as_slice(), "timed out"),
        (
            &["--depends-on", "done", "--cwd", "/no/such/folder"],
            "could not be started: cwd /no/such/folder does not exist",
        ),
    ] {
        let output = run(&home, args, "printf said >&2; sleep 60", 1);
        let (said, last) = text(&output.stderr).rsplit_once("error: ").expect("an error");
        assert!(last.contains(error) && (said.is_empty() || said == "said\n"), "{said:?} {last}");
    }
    let running = start(&home, &["-q"], "sleep 60");
    home.wait_for_state("a", "processing");
    home.run(["cancel", "a"]).ok();
    let (status, said) = running.end();
    assert_eq!((status.code(), said.join("\n").as_str()), (Some(1), "error: job `a` is cancelled (user)"));
}

#[test]
fn a_job_that_waits_and_is_cancelled_or_removed_is_an_error() {
    for (verb, code, error) in [
        ("cancel", 1, "error: job `a` is cancelled (user)"),
        ("remove", 3, "error: job `a` was removed while it was being waited for"),
    ] {
        let home = WorkingHome::new();
        let _worker = TestWorker::new(&home, "w1");
        let running = start(&home, &[], "true");
        home.wait_for_state("a", "pending");
        home.run([verb, "a"]).ok();
        let (status, said) = running.end();
        assert_eq!((status.code(), said), (Some(code), vec![error.to_owned()]));
    }
}

#[test]
fn a_running_worker_is_used() {
    let home = WorkingHome::new();
    home.run(["worker", "start"]).ok();
    let [worker] = home.workers().try_into().expect("one worker");
    run(&home, &["--id", "a"], "true", 0);
    assert_eq!(home.worker_of("a"), worker.id.as_str());
    assert_eq!(home.workers().len(), 1);
}

#[test]
fn workers_that_do_not_serve_the_job_are_ignored() {
    let home = WorkingHome::new();
    home.run(["worker", "start", "--queue", "other"]).ok();
    let [worker] = home.workers().try_into().expect("one worker");
    let _sleeper = TestWorker::for_job(&home, "w1", "b");
    run(&home, &["--id", "a"], "true", 0);
    assert_ne!(home.worker_of("a"), worker.id.as_str());
    run(&home, &["--id", "c", "--queue", "other"], "true", 0);
    assert_eq!(home.worker_of("c"), worker.id.as_str());
}

#[test]
fn two_concurrent_runs_do_not_disturb_each_other() {
    let home = WorkingHome::new();
    // Each ends only after the other has started.
    let command = |own: &str, other: &str| format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done");
    let one = Background::start(home.call(["run", "--command", &command("one", "two")]));
    let two = Background::start(home.call(["run", "--command", &command("two", "one")]));
    for running in [one, two] {
        let (status, said) = running.end();
        assert_eq!((status.code(), said), (Some(0), vec![]));
    }
    home.wait_until_deserted();
}

#[test]
fn a_worker_that_exits_is_replaced() {
    let home = WorkingHome::new();
    let worker = TestWorker::new(&home, "w1");
    let running = start(&home, &[], "echo done");
    home.wait_for_state("a", "pending");
    drop(worker);
    let (status, said) = running.end();
    assert_eq!((status.code(), said), (Some(0), vec!["done".to_owned()]));
    assert_ne!(home.worker_of("a"), "w1");
}

#[test]
fn a_job_that_lost_its_worker_gets_a_new_one() {
    let home = WorkingHome::new();
    let running = start(&home, &[], "[ $QUEUECTL_ATTEMPT = 2 ] || sleep 60; echo again");
    home.wait_for_state("a", "processing");
    home.run(["worker", "stop", "--now"]).ok();
    assert_eq!(running.prints(), "again");
    let (status, said) = running.end();
    assert_eq!(
        (status.code(), said),
        (Some(0), vec!["attempt 1 ended: released; the next one is due".to_owned()])
    );
}

#[test]
fn retries_are_followed_and_reported() {
    let home = WorkingHome::new();
    let flags: Vec<&str> = QUICK_RETRY.iter().copied().chain(["--max-retries", "1"]).collect();
    let output = run(&home, &flags, "echo $QUEUECTL_ATTEMPT; [ $QUEUECTL_ATTEMPT = 2 ] || exit 3", 0);
    assert_eq!(text(&output.stdout), "1\n2\n");
    assert!(text(&output.stderr).starts_with("attempt 1 ended: exit code 3"), "{output:?}");
    let output = run(&home, &flags, "exit $((4 + $QUEUECTL_ATTEMPT))", 6);
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
    let flags: Vec<&str> = QUICK_RETRY.iter().copied().chain(["--max-attempts", "3", "-q"]).collect();
    let output = run(&home, &flags, "echo $QUEUECTL_ATTEMPT; exit 9", 9);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("1\n2\n3\n", ""));
}

#[test]
fn output_is_shown_while_the_command_runs() {
    let home = WorkingHome::new();
    let running = start(&home, &[], UNTIL_GO);
    assert_eq!(running.prints(), "ready");
    home.go();
    let (status, rest) = running.end();
    assert_eq!((status.code(), rest), (Some(0), vec!["went".to_owned()]));
}

#[test]
fn json_is_the_finished_job() {
    let home = WorkingHome::new();
    let output = run(&home, &["--json", "--id", "a"], "echo out; echo err >&2; exit 3", 3);
    let job: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&job["id"], &job["state"], &job["exit_code"]), (&json!("a"), &json!("dead"), &json!(3)));
    assert_eq!((text(&output.stderr), &job["existing"]), ("out\nerr\n", &Value::Null));
    let output = run(&home, &["--json", "--timeout", "1ms"], "sleep 60", 1);
    let error: Value = serde_json::from_slice(&output.stderr).expect("an object");
    assert_eq!(error["exit_code"], 1);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("the job")["state"], "dead");
    let output = run(&home, &["--json", "--id", "a", "--if-absent"], "true", 3);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("the job")["existing"], true);
}

#[test]
fn an_id_that_is_taken_is_refused_or_followed() {
    let home = WorkingHome::new();
    run(&home, &["--id", "a"], "echo first; exit 5", 5);
    home.run(["run", "--id", "a", "--", "echo", "second"]).fails(4).prints("").says("--if-absent");
    let output = run(&home, &["--id", "a", "--if-absent"], "echo second", 5);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("first\n", ""));
    assert_eq!(home.count(), 1);
}

#[test]
fn a_job_with_the_same_key_is_followed() {
    let home = WorkingHome::new();
    let first = start(&home, &["--unique-key", "k"], UNTIL_GO);
    assert_eq!(first.prints(), "ready");
    let second = Background::start(home.call(["run", "--unique-key", "k", "--", "echo", "other"]));
    assert_eq!(second.prints(), "ready");
    home.go();
    for following in [first, second] {
        let (status, rest) = following.end();
        assert_eq!((status.code(), rest), (Some(0), vec!["went".to_owned()]));
    }
    assert_eq!(home.count(), 1);
}

#[test]
fn a_paused_queue_is_reported() {
    let home = WorkingHome::new();
    let queue: QueueName = "ci".parse().expect("a name");
    let pause = Pause { by: "ann".to_owned(), reason: Some("release".to_owned()) };
    home.store().pause_queue(&queue, &pause).expect("it is held");
    let running = start(&home, &["--queue", "ci"], "echo done");
    assert_eq!(
        running.says(),
        "queue ci was paused by ann (release), so the job waits; `queuectl logs -f a` follows the job, \
         `queuectl wait a` waits for it"
    );
    home.store().resume_queue(&queue, "tester").expect("the queue is resumed");
    let (status, rest) = running.end();
    assert_eq!((status.code(), rest), (Some(0), vec!["done".to_owned()]));
}

#[test]
fn a_signal_ends_run_but_not_the_job() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let home = WorkingHome::new();
        let running = start(&home, &[], UNTIL_GO);
        assert_eq!(running.prints(), "ready");
        running.signal(signal);
        let (status, said) = running.end();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{said:?}");
        assert_eq!(said, ["detached: `queuectl logs -f a` follows the job, `queuectl wait a` waits for it"]);
        assert_eq!(home.state_of("a"), "processing");
        home.go();
        home.run(["wait", "a"]).ok().prints("a\n");
        home.wait_until_deserted();
    }
}

#[test]
fn a_signal_is_handled_while_the_output_is_blocked() {
    let home = WorkingHome::new();
    let mut call = home.call(["run", "-q", "--id", "a", "--", "yes"]).interruptible();
    let mut child = call.spawn();
    let stdout = child.stdout.take().expect("a pipe");
    wait_until("the pipe is full", || {
        rustix::io::ioctl_fionread(&stdout).is_ok_and(|bytes| bytes >= 60 << 10)
    });
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM)
        .expect("it is sent");
    assert_eq!(end_of(child).signal(), Some(Signal::TERM.as_raw()));
    assert_eq!(home.state_of("a"), "processing");
}

/// Reads one line of the output of `yes`, and exits.
fn read_a_line_of(home: &WorkingHome, args: &[&str]) {
    let args = ["run", "--id", "a"].iter().chain(args).chain(&["--", "yes"]);
    let mut child = home.call(args).interruptible().spawn();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("a line");
    drop(stdout);
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    assert_eq!(end_of(child).signal(), Some(Signal::PIPE.as_raw()));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("it can be read");
    assert_eq!((line.as_str(), said.as_str()), ("y\n", ""));
}

#[test]
fn fault_13_a_closed_output_cancels_the_job() {
    let home = WorkingHome::new();
    read_a_line_of(&home, &[]);
    assert_eq!(home.state_of("a"), "cancelled");
    home.wait_until_deserted();
}

#[test]
fn a_job_enqueued_by_another_caller_is_not_cancelled() {
    let home = WorkingHome::new();
    home.run(["enqueue", "--id", "a", "--", "yes"]).ok();
    read_a_line_of(&home, &["--if-absent"]);
    assert_eq!(home.state_of("a"), "processing");
}

#[test]
fn fault_13_an_unwritable_output_is_an_error_and_the_job_continues() {
    let home = WorkingHome::new();
    let full = std::fs::File::options().write(true).open("/dev/full").expect("it opens");
    let mut command = home.call(["run", "--id", "a", "--command", UNTIL_GO]).into_command();
    let output = command.stdout(full).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: failed to write the output (")
            && said.contains("\nhint: `queuectl logs -f a`")
    );
    home.go();
    home.run(["wait", "a"]).ok();
}

#[test]
fn failing_to_start_a_worker_is_an_error_and_keeps_the_job() {
    let home = WorkingHome::new();
    home.file("home/workers", "no folder");
    let ran = home.run(["run", "--id", "a", "--", "true"]).fails(1).prints("");
    assert!(ran.stderr.contains("hint: `queuectl logs -f a`"), "{ran}");
    assert_eq!(home.state_of("a"), "pending");
}

#[test]
fn deleted_output_is_reported() {
    let home = WorkingHome::new();
    let worker = TestWorker::new(&home, "w1");
    let running = start(&home, &[], "x");
    let lease = worker.claim_soon("a");
    worker.settle(lease, Outcome::Timeout, Some("timed out"));
    let (status, said) = running.end();
    assert_eq!(status.code(), Some(1));
    assert!(
        said[0].starts_with("error: the output of attempt 1 of job `a` is not on this machine"),
        "{said:?}"
    );
    assert_eq!(said[1], "error: job `a` is dead (retries exhausted: timed out)");
}

#[test]
fn invalid_arguments_are_refused_and_nothing_is_stored() {
    let home = WorkingHome::new();
    for args in [
        ["run"].as_slice(),
        &["run", "--"],
        &["run", "--command", "x", "--", "y"],
        &["run", "--command", " "],
        &["run", "--max-retries", "1", "--max-attempts", "2", "--", "x"],
        &["run", "--file", "x"],
    ] {
        home.run(args).fails(2).prints("");
    }
    assert!(home.is_empty());
}
