use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use domain::job::outcome::Outcome;
use domain::log;
use domain::log::{Frame, HEADER_BYTES, Header, Stream};
use engine::attempt::capture::CapturedOutput;
use ops::jobs::logs::log_path;
use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

const LARGE_LOG_LIMIT: u64 = 16 << 20;
const FAILURE: Outcome = Outcome::Failure { exit_code: 1 };

/// The output of an attempt.
pub(super) type Printed<'a> = &'a [(Stream, &'a [u8])];

const HELLO: Printed<'_> =
    &[(Stream::Out, b"one\n"), (Stream::Err, b"oh\n"), (Stream::Out, b"two\n"), (Stream::Err, b"no\n")];

impl Home {
    /// A new job `a` with one attempt for each of these.
    pub(super) fn with_attempts(attempts: &[(Printed<'_>, Outcome)]) -> Self {
        let home = Self::new();
        home.run([
            "enqueue",
            "-q",
            r#"{"id":"a","command":"x","backoff":{"strategy":"fixed","delay":"1ms"}}"#,
        ])
        .ok();
        for (printed, outcome) in attempts {
            home.run_attempt(printed, *outcome, LARGE_LOG_LIMIT);
        }
        home
    }

    pub(super) fn that_printed(printed: Printed<'_>) -> Self {
        Self::with_attempts(&[(printed, Outcome::Success)])
    }

    /// The next attempt of job `a`, whose output stays small.
    pub(super) fn run_attempt(&self, printed: Printed<'_>, outcome: Outcome, max_bytes: u64) {
        let worker = TestWorker::new(self, &format!("w{}", fastrand::u64(..)));
        let lease = worker.claim_soon("a");
        let mut capture = worker.capture(self, &lease, max_bytes);
        for (stream, bytes) in printed {
            capture.take(*stream, bytes);
        }
        worker.settle_captured(lease, outcome, capture.finish());
    }

    /// A job `a` that has run once and left this log file.
    fn with_log(log: &[u8]) -> Self {
        let home = Self::with_attempts(&[(&[], Outcome::Success)]);
        let path = home.log(1);
        fs::create_dir_all(path.parent().expect("logs/")).expect("logs/ is made");
        fs::write(path, log).expect("the log is written");
        home
    }

    fn log(&self, attempt: u32) -> PathBuf {
        log_path(&self.path(), self.jobs()[0].number, attempt)
    }

    pub(super) fn logs(&self, args: &[&str]) -> Command {
        self.call(["logs", "a"].iter().chain(args)).into_command()
    }
}

fn log_of(entries: &[u8]) -> Vec<u8> {
    [&Header::default().encode()[..], entries].concat()
}

fn frame(stream: Stream, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let frame = Frame { stream, at: Duration::from_millis(5), bytes: text.as_bytes() };
    log::encode_into(&mut out, frame);
    out
}

#[test]
fn both_streams_are_shown_in_order() {
    let home = Home::that_printed(HELLO);
    home.run(["logs", "a"]).ok().prints("one\noh\ntwo\nno\n").says_nothing();
}

#[test]
fn one_stream_can_be_selected() {
    let home = Home::that_printed(HELLO);
    home.run(["logs", "a", "--stdout"]).ok().prints("one\ntwo\n").says_nothing();
    home.run(["logs", "a", "--stderr"]).ok().prints("oh\nno\n").says_nothing();
}

#[test]
fn bytes_are_unchanged_in_a_pipe() {
    let bytes: Vec<u8> = (0..=255).chain(*b"\x1b[31m\r\n no newline").collect();
    let home = Home::that_printed(&[(Stream::Out, &bytes)]);
    let ran = home.logs(&[]).output().expect("it runs");
    assert_eq!((ran.stdout, ran.status.code()), (bytes, Some(0)));
    assert!(ran.stderr.is_empty());
}

#[test]
fn fault_15_control_characters_are_escaped_on_a_terminal() {
    let hostile = "tab\there \u{1b}[2J\u{1b}]0;title\u{7} \u{202e}txt\u{9b} ä\r\nbar\r50%\n".as_bytes();
    let home = Home::that_printed(&[(Stream::Out, hostile), (Stream::Out, b"\xff\x00\n")]);
    let seen = on_terminal(home.logs(&["--color", "never"]), 100, "");
    assert_eq!(
        seen.screen,
        "tab\there \\u{1b}[2J\\u{1b}]0;title\\u{7} \\u{202e}txt\\u{9b} ä\nbar\\r50%\n\\xff\\u{0}\n"
    );
}

#[test]
fn raw_bytes_can_be_shown_on_a_terminal() {
    let home = Home::that_printed(&[(Stream::Err, b"\x1b[1mbold\x1b[0m\rx")]);
    assert_eq!(on_terminal(home.logs(&["--raw"]), 100, "").screen, "\u{1b}[1mbold\u{1b}[0m\rx");
}

#[test]
fn stderr_is_red_on_a_terminal() {
    let home = Home::that_printed(HELLO);
    let seen = on_terminal(home.logs(&[]), 100, "");
    assert_eq!(seen.screen, "one\n\u{1b}[31moh\n\u{1b}[0mtwo\n\u{1b}[31mno\n\u{1b}[0m");
    let seen = on_terminal(home.logs(&["--stderr", "--color", "never"]), 100, "");
    assert_eq!(seen.screen, "oh\nno\n");
    home.run(["logs", "a", "--color", "always"]).ok().shows("\u{1b}[31moh");
}

#[test]
fn output_ends_with_a_newline_on_a_terminal() {
    let home = Home::that_printed(&[(Stream::Out, b"no newline")]);
    assert_eq!(on_terminal(home.logs(&[]), 100, "").screen, "no newline\n");
    home.run(["logs", "a"]).ok().prints("no newline");
}

#[test]
fn json_has_an_object_for_each_frame() {
    let home = Home::that_printed(&[
        (Stream::Out, b"\x1b[1mh\xc3"),
        (Stream::Err, b"\xff\n"),
        (Stream::Out, b"\xa4\xe2\x82"),
    ]);
    let ran = home.run(["logs", "a", "--json"]).ok().says_nothing().shows_no("\u{1b}");
    let lines: Vec<Value> =
        ran.lines().iter().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let texts: Vec<(&Value, &Value)> = lines.iter().map(|line| (&line["stream"], &line["text"])).collect();
    let (out, err) = (json!("stdout"), json!("stderr"));
    assert_eq!(
        texts,
        [
            (&out, &json!("\u{1b}[1mh")),
            (&err, &json!("\u{fffd}\n")),
            (&out, &json!("ä")),
            (&out, &json!("\u{fffd}"))
        ],
        "characters are not cut in two"
    );
    for line in &lines {
        assert_eq!((&line["job"], &line["attempt"]), (&json!("a"), &json!(1)));
        let at = line["at"].as_str().expect("a time");
        assert!(at.len() == 24 && at.ends_with('Z'), "{at}");
        assert!(at >= home.show("a")["started_at"].as_str().expect("a time"), "{at}");
    }
}

#[test]
fn the_latest_attempt_that_printed_anything_is_shown() {
    let home = Home::with_attempts(&[
        (&[(Stream::Out, b"first\n")], FAILURE),
        (&[(Stream::Out, b"second\n")], FAILURE),
        (&[], FAILURE),
    ]);
    home.run(["logs", "a"]).ok().prints("second\n").says("attempt 3 printed nothing; this is attempt 2");
    home.run(["logs", "a", "-q"]).ok().says_nothing();
    home.run(["logs", "a", "--attempt", "1"]).ok().prints("first\n").says_nothing();
    home.run(["logs", "a", "--attempt", "3"]).ok().prints("").says("attempt 3 printed nothing");
    home.run(["logs", "a", "--attempt", "4"])
        .fails(3)
        .prints("")
        .says("job `a` has no attempt 4")
        .says("hint: it has attempts 1 to 3");
}

#[test]
fn a_running_attempt_is_the_latest() {
    let home = Home::with_attempts(&[(&[(Stream::Out, b"old\n")], FAILURE)]);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_soon("a");
    home.run(["logs", "a"]).ok().prints("").says("attempt 2 has printed nothing yet");
    let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
    capture.take(Stream::Out, b"working\n");
    capture.spill();
    home.run(["logs", "a"]).ok().prints("working\n").says_nothing();
}

#[test]
fn a_job_that_has_not_run_says_so() {
    let home = Home::with_jobs(&["a"]);
    home.run(["logs", "a"]).ok().prints("").says("job a has not run yet (it is pending)");
    home.run(["logs", "a", "-q"]).ok().prints("").says_nothing();
    home.run(["logs", "a", "--json"]).ok().prints("").says_nothing();
    home.run(["logs", "a", "--attempt", "1"]).fails(3).says("hint: it has not run yet");
}

#[test]
fn an_attempt_that_printed_nothing_says_so() {
    let home = Home::that_printed(&[]);
    home.run(["logs", "a"]).ok().prints("").says("attempt 1 printed nothing");
}

#[test]
fn a_long_output_is_read_from_its_file() {
    let home = Home::with_jobs(&["a"]);
    let text = "0123456789\n".repeat(20_000);
    home.run_attempt(&[(Stream::Out, text.as_bytes())], Outcome::Success, LARGE_LOG_LIMIT);
    assert!(home.log(1).is_file());
    home.run(["logs", "a"]).ok().prints(&text).says_nothing();
    assert_eq!(home.show("a")["history"][0]["log_bytes"], text.len());
}

#[test]
fn a_cut_is_marked() {
    let home = Home::with_jobs(&["a"]);
    let text = "x".repeat(3 << 20);
    home.run_attempt(&[(Stream::Out, text.as_bytes())], Outcome::Success, 1 << 20);
    let ran = home.run(["logs", "a"]).ok();
    assert_eq!((ran.stdout.len(), ran.stderr.as_str()), (1 << 20, "[… 2 MiB cut …]\n"));
    home.run(["logs", "a", "-q"]).ok().prints("").says_nothing();
    let lines = home.run(["logs", "a", "--json"]).ok().says_nothing().stdout;
    assert!(lines.contains("{\"job\":\"a\",\"attempt\":1,\"cut_bytes\":2097152}\n"));
    let seen = on_terminal(home.logs(&[]), 100, "").screen;
    assert!(seen.contains("x\n\u{1b}[2m[… 2 MiB cut …]\u{1b}[0m\nx"), "on a line of its own, and dim");
}

#[test]
fn a_cut_in_stored_output_is_marked() {
    let home = Home::with_jobs(&["a"]);
    home.run_attempt(&[(Stream::Out, b"0123456789")], Outcome::Success, 4);
    home.run(["logs", "a"]).ok().prints("0189").says("[… 6 bytes cut …]");
}

#[test]
fn the_output_of_a_lost_attempt_is_shown() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
    capture.take(Stream::Out, b"last words\n");
    capture.spill();
    worker.die();
    home.run(["logs", "a"]).ok().prints("last words\n");
}

#[test]
fn a_torn_end_is_left_out() {
    let mut entries = frame(Stream::Out, "whole\n");
    entries.extend_from_slice(&frame(Stream::Out, "torn off")[..5]);
    Home::with_log(&log_of(&entries)).run(["logs", "a"]).ok().prints("whole\n").says_nothing();
    Home::with_log(&Header::default().encode()[..HEADER_BYTES / 2]).run(["logs", "a"]).ok().prints("");
}

#[test]
fn a_damaged_log_is_shown_as_far_as_it_goes() {
    let mut entries = frame(Stream::Out, "whole\n");
    entries.extend([0; 100]);
    let home = Home::with_log(&log_of(&entries));
    home.run(["logs", "a"]).fails(7).prints("whole\n").says("-1.log` (the log is damaged)");
    home.run(["logs", "a", "-f"]).prints("whole\n").says("(the log is damaged)").says("job a is completed");
    Home::with_log(&[b'x'; 100]).run(["logs", "a"]).fails(7).prints("").says("not a log file");
    let mut newer = log_of(&[]);
    newer[7] += 1;
    Home::with_log(&newer).run(["logs", "a"]).fails(7).says("newer version");
    let mut torn = log_of(&[]);
    torn[20] ^= 1;
    Home::with_log(&torn).run(["logs", "a"]).fails(7).says("the log is damaged");
}

#[test]
fn a_log_with_an_overflowing_cut_size_is_still_shown() {
    let mut entries = Vec::new();
    log::encode_cut_into(&mut entries, u64::MAX);
    log::encode_cut_into(&mut entries, u64::MAX);
    entries.extend(frame(Stream::Out, "whole\n"));
    Home::with_log(&log_of(&entries)).run(["logs", "a"]).ok().prints("whole\n");
}

#[test]
fn damage_in_stored_output_is_detected() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let output = [frame(Stream::Out, "whole\n"), vec![0; 9]].concat();
    let captured = CapturedOutput { output: Some(output), log_bytes: 6, last_error_line: None };
    worker.settle_captured(lease, Outcome::Success, captured);
    home.run(["logs", "a"]).fails(7).prints("whole\n").says("attempt 1 of job `a` (the log is damaged)");
}

#[test]
fn deleted_output_is_not_mistaken_for_empty_output() {
    let home = Home::with_jobs(&["a"]);
    home.run_attempt(&[(Stream::Out, &vec![b'x'; 40_000])], Outcome::Success, LARGE_LOG_LIMIT);
    let log = home.log(1);
    fs::remove_file(&log).expect("it goes");
    home.run(["logs", "a"])
        .fails(3)
        .prints("")
        .says("attempt 1 of job `a` is not on this machine (it ran on `testhost`)");
    let ran = home.run(["logs", "a", "-f"]).says("is not on this machine").says("job a is completed");
    assert_eq!(ran.status.code(), Some(3));
    fs::remove_dir(log.parent().expect("logs/")).expect("all of them go");
    home.run(["logs", "a"]).fails(3).says("is not on this machine");
}

#[test]
fn an_attempt_whose_output_is_deleted_does_not_hide_the_others() {
    let long = vec![b'x'; 40_000];
    let printed: [Printed<'_>; 3] =
        [&[(Stream::Out, &long)], &[(Stream::Out, b"two\n")], &[(Stream::Out, b"three\n")]];
    let home = Home::with_attempts(&printed.map(|printed| (printed, FAILURE)));
    fs::remove_file(home.log(1)).expect("it goes");
    let ran = home.run(["logs", "a", "--all"]).prints("two\nthree\n").says("the output of attempt 1");
    assert_eq!(ran.status.code(), Some(3), "{ran}");
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    let ran =
        home.run(["logs", "a", "b", "--all"]).shows("two").shows("three").says("the output of attempt 1");
    assert_eq!(ran.status.code(), Some(3), "{ran}");
}

#[test]
fn output_that_was_deleted_on_this_machine_is_missing() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--", "seq", "30000"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    fs::remove_file(home.log(1)).expect("it goes");
    home.run(["logs", "a"])
        .fails(3)
        .says("error: the output of attempt 1 of job `a` is missing\n")
        .says("hint: output is deleted after some time: `queuectl config get retain_logs` shows");
}

#[test]
fn the_tail_of_every_attempt_that_has_ended_is_followed() {
    let home = Home::with_attempts(&[
        (&[(Stream::Out, b"1a\n1b\n")], FAILURE),
        (&[(Stream::Out, b"2a\n2b\n")], FAILURE),
        (&[(Stream::Out, b"3a\n3b\n")], Outcome::Success),
    ]);
    home.run(["logs", "a", "--all", "-f", "-n", "1"]).ok().prints("1b\n2b\n3b\n");
    home.run(["logs", "a", "--all", "-f", "-n", "0"]).ok().prints("");
}

#[test]
fn a_link_or_fifo_in_place_of_a_log_is_not_read() {
    let home = Home::with_jobs(&["a"]);
    home.run_attempt(&[(Stream::Out, &vec![b'x'; 40_000])], Outcome::Success, LARGE_LOG_LIMIT);
    let log = home.log(1);
    let pipe = |path: &PathBuf| Command::new("mkfifo").arg(path).status().expect("mkfifo").success();
    fs::remove_file(&log).expect("it goes");
    assert!(pipe(&log));
    home.run(["logs", "a"]).fails(3).says("is not on this machine");
    fs::remove_file(&log).expect("it goes");
    symlink("/etc/passwd", &log).expect("a link");
    home.run(["logs", "a"]).fails(3).prints("").says("is not on this machine");
}

#[test]
fn bad_usage_is_refused() {
    let home = Home::that_printed(HELLO);
    home.run(["logs", "nope"]).fails(3).prints("").says("there is no job `nope`");
    home.run(["logs", "nope", "-f"]).fails(3).prints("");
    home.run(["logs", "a/b"]).fails(2).says("invalid id");
    home.run(["logs", "a", "--attempt", "0"]).fails(2);
    home.run(["logs", "a", "--attempt", "-1"]).fails(2);
    home.run(["logs", "a", "--attempt", "99999999999"]).fails(2);
    home.run(["logs", "a", "--stdout", "--stderr"]).fails(2);
    home.run(["logs", "a", "--raw", "--json"]).fails(2);
    home.run(["logs", "a", "--tail", "-1"]).fails(2);
    home.run(["logs", "a", "-n", "x"]).fails(2);
    home.run(["logs", "a", "--all", "--attempt", "1"]).fails(2);
    home.run(["logs", "a", "--batch", "b"]).fails(2);
}

#[test]
fn fault_13_a_closed_pipe_ends_the_command_quietly() {
    let home = Home::with_jobs(&["a"]);
    home.run_attempt(
        &[(Stream::Out, "line\n".repeat(100_000).as_bytes())],
        Outcome::Success,
        LARGE_LOG_LIMIT,
    );
    let mut child = home.call(["logs", "a"]).spawn();
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
