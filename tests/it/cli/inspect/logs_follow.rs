//! `logs -f` while the test plays the worker.

use std::io::Read;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use domain::job::outcome::Outcome;
use domain::log::Stream;
use engine::attempt::capture::CapturedOutput;

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

const LARGE_LOG_LIMIT: u64 = 16 << 20;
const FAILURE: Outcome = Outcome::Failure { exit_code: 1 };
/// Longer than any step here takes.
const BOUND: Duration = Duration::from_secs(20);

/// A running `logs -f` and what it has printed so far.
struct FollowProcess {
    child: Child,
    chunks: Receiver<Vec<u8>>,
    stdout: Vec<u8>,
}

impl FollowProcess {
    fn new(home: &Home, args: &[&str]) -> Self {
        let mut child = home.call(["logs", "a", "-f"].iter().chain(args)).spawn();
        let mut stdout = child.stdout.take().expect("a pipe");
        let (sender, chunks) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, chunks, stdout: Vec::new() }
    }

    /// Waits until its standard output is this.
    #[track_caller]
    fn shows(&mut self, expected: &str) {
        let began = Instant::now();
        while self.stdout.len() < expected.len() {
            let left = BOUND.saturating_sub(began.elapsed());
            let chunk = self.chunks.recv_timeout(left);
            self.stdout.extend(chunk.unwrap_or_else(|_| panic!("only {:?}", self.text())));
        }
        assert_eq!(self.text(), expected);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Waits until it has said this on standard error.
    #[track_caller]
    fn wait_for_note(&mut self, note: &str) {
        let stderr = self.child.stderr.as_mut().expect("a pipe");
        let mut said = Vec::new();
        let mut buffer = [0; 4_096];
        while !String::from_utf8_lossy(&said).contains(note) {
            let read = stderr.read(&mut buffer).expect("it can be read");
            assert!(read > 0, "it only said {:?}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&buffer[..read]);
        }
    }

    /// Waits for its end; returns the rest of its standard error.
    #[track_caller]
    fn ends(&mut self) -> (ExitStatus, String) {
        while let Ok(chunk) = self.chunks.recv_timeout(BOUND) {
            self.stdout.extend(chunk);
        }
        let mut notes = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut notes).expect("stderr is text");
        (self.child.wait().expect("it ends"), notes)
    }
}

impl Drop for FollowProcess {
    fn drop(&mut self) {
        // Only if the test failed; otherwise the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn home(max_retries: u32) -> Home {
    let home = Home::new();
    let job = format!(
        r#"{{"id":"a","command":"x","max_retries":{max_retries},"backoff":{{"strategy":"fixed","delay":"1ms"}}}}"#
    );
    home.run(["enqueue", "-q", &job]).ok();
    home
}

#[test]
fn output_is_shown_live_until_the_job_has_finished() {
    let home = home(0);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
    let mut following = FollowProcess::new(&home, &[]);
    capture.take(Stream::Out, b"one\n");
    capture.spill();
    following.shows("one\n");
    capture.take(Stream::Err, b"two\n");
    following.shows("one\ntwo\n");
    capture.take(Stream::Out, b"three");
    worker.settle_captured(lease, Outcome::Success, capture.finish());
    let (status, notes) = following.ends();
    assert_eq!((status.code(), following.text().as_str()), (Some(0), "one\ntwo\nthree"));
    assert_eq!(notes, "job a is completed\n");
}

#[test]
fn following_continues_through_further_attempts() {
    let home = home(1);
    let mut following = FollowProcess::new(&home, &[]);
    following.wait_for_note("job a has not run yet (it is pending)\n");
    for (number, (text, outcome)) in [("first\n", FAILURE), ("second\n", Outcome::Success)].iter().enumerate()
    {
        let worker = TestWorker::new(&home, &format!("w{number}"));
        let lease = worker.claim_soon("a");
        let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
        capture.take(Stream::Err, text.as_bytes());
        worker.settle_captured(lease, *outcome, capture.finish());
    }
    let (status, notes) = following.ends();
    assert_eq!((status.code(), following.text().as_str()), (Some(0), "first\nsecond\n"));
    // Whether there is a hint that no worker is running depends on when the first one registers.
    let notes: Vec<&str> = notes.lines().filter(|line| !line.starts_with("hint: ")).collect();
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("attempt 1 ended: exit code 1: first"), "{notes:?}");
    assert_eq!(notes[1], "job a is completed");
}

#[test]
fn the_start_of_the_next_attempt_is_shown() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--id", "a", "--backoff", r#"{"strategy":"fixed","delay":"5m"}"#, "--", "x"])
        .ok();
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    worker.settle_captured(lease, FAILURE, CapturedOutput::default());
    let mut following = FollowProcess::new(&home, &[]);
    following.wait_for_note("attempt 1 ended: exit code 1; the next one starts in 5m");
    home.run(["cancel", "a"]).ok();
    let (status, notes) = following.ends();
    assert_eq!(status.code(), Some(0));
    assert!(notes.contains("job a is cancelled"), "{notes}");
}

#[test]
fn a_single_attempt_can_be_followed() {
    let home = home(3);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
    let mut following = FollowProcess::new(&home, &["--attempt", "1", "--stdout"]);
    capture.take(Stream::Err, b"not this\n");
    capture.take(Stream::Out, b"this\n");
    worker.settle_captured(lease, FAILURE, capture.finish());
    let (status, notes) = following.ends();
    assert_eq!((status.code(), following.text().as_str(), notes.as_str()), (Some(0), "this\n", ""));
}

#[test]
fn following_a_finished_job_shows_it_and_ends() {
    let home = home(0);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, LARGE_LOG_LIMIT);
    capture.take(Stream::Err, b"no luck\n");
    worker.settle_captured(lease, FAILURE, capture.finish());
    home.run(["logs", "a", "-f"]).ok().prints("no luck\n").says("job a is dead: exit code 1: no luck\n");
    home.run(["logs", "a", "-f", "--json"]).ok().says_nothing().shows("\"text\":\"no luck\\n\"");
    home.run(["logs", "a", "-f", "-q"]).ok().prints("").says_nothing();
}

#[test]
fn following_a_cancelled_job_that_never_ran_ends() {
    let home = home(0);
    home.run(["cancel", "a"]).ok();
    home.run(["logs", "a", "-f"])
        .ok()
        .prints("")
        .says("job a never ran: it was cancelled")
        .says("job a is cancelled");
}

#[test]
fn a_removed_job_is_an_error() {
    let home = home(0);
    let mut following = FollowProcess::new(&home, &[]);
    following.wait_for_note("has not run yet");
    home.run(["remove", "a"]).ok();
    let (status, notes) = following.ends();
    assert_eq!(status.code(), Some(3));
    assert!(notes.contains("job `a` was removed while it was being waited for"), "{notes}");
}

#[test]
fn following_continues_beyond_the_log_limit_and_marks_the_gap() {
    const LINES: usize = 400_000;
    let home = home(0);
    let worker = TestWorker::new(&home, "w");
    let lease = worker.claim_job("a");
    let mut capture = worker.capture(&home, &lease, 1 << 20);
    let mut following = FollowProcess::new(&home, &["--json"]);
    for first in (0..LINES).step_by(1_000) {
        let lines: Vec<String> = (first..first + 1_000).map(|line| format!("{line:015}\n")).collect();
        capture.take(Stream::Out, lines.concat().as_bytes());
    }
    worker.settle_captured(lease, Outcome::Success, capture.finish());
    let (status, _) = following.ends();
    assert_eq!(status.code(), Some(0));
    let mut place = 0;
    for line in following.text().lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        if let Some(cut) = object["cut_bytes"].as_u64() {
            place += usize::try_from(cut).expect("a size");
            continue;
        }
        let text = object["text"].as_str().expect("text");
        let line_at = format!("{:015}\n", place / 16);
        let expected = &line_at[place % 16..];
        let length = expected.len().min(text.len());
        assert_eq!(text[..length], expected[..length], "at {place}");
        place += text.len();
    }
    assert_eq!(place, LINES * 16, "all is shown or counted");
}

#[test]
fn fault_13_following_ends_when_the_reader_is_gone() {
    let home = home(0);
    let mut alone = home.call(["logs", "a", "-f"]).spawn();
    drop(alone.stdout.take());
    let began = Instant::now();
    while alone.try_wait().expect("its state").is_none() {
        assert!(began.elapsed() < BOUND, "it still waits");
        std::thread::sleep(Duration::from_millis(5));
    }
    let notes = alone.wait_with_output().expect("it has ended").stderr;
    assert!(!String::from_utf8_lossy(&notes).contains("error"));
}
