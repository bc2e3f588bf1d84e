//! `logs` by lines: the last ones, with times, of all attempts, and of several jobs; and colours.

use domain::job::outcome::Outcome;
use domain::log::Stream;
use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::inspect::logs::Printed;

const LARGE_LOG_LIMIT: u64 = 16 << 20;
const FAILURE: Outcome = Outcome::Failure { exit_code: 1 };
const LINES: Printed<'_> = &[
    (Stream::Out, b"one\ntwo\n"),
    (Stream::Err, b"oh\n"),
    (Stream::Out, b"three\n"),
    (Stream::Err, b"no\n"),
    (Stream::Out, b"four"),
];

impl Home {
    /// Adds a job that ran once and printed this.
    fn job_that_printed(&self, id: &str, batch: &str, printed: Printed<'_>) {
        self.run(["enqueue", "-q", "--id", id, "--batch", batch, "--", "x"]).ok();
        let worker = TestWorker::new(self, &format!("w{}", fastrand::u64(..)));
        let lease = worker.claim_job(id);
        let mut capture = worker.capture(self, &lease, LARGE_LOG_LIMIT);
        for (stream, bytes) in printed {
            capture.take(*stream, bytes);
        }
        worker.settle_captured(lease, Outcome::Success, capture.finish());
    }
}

fn objects(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn the_last_lines_can_be_shown() {
    let home = Home::that_printed(LINES);
    let last = |args: &[&str]| home.run([&["logs", "a"], args].concat()).ok().says_nothing().stdout;
    assert_eq!(last(&["-n", "1"]), "four");
    assert_eq!(last(&["-n", "2"]), "no\nfour");
    assert_eq!(last(&["--tail", "3"]), "three\nno\nfour");
    assert_eq!(last(&["-n", "100"]), "one\ntwo\noh\nthree\nno\nfour");
    assert_eq!(last(&["-n", "0"]), "");
    assert_eq!(last(&["-n", "1", "--stderr"]), "no\n");
    assert_eq!(last(&["-n", "2", "--stdout"]), "three\nfour");
    let ran = home.run(["logs", "a", "-f", "-n", "1"]).ok().prints("four");
    assert_eq!(ran.stderr, "job a is completed\n");
    home.run(["logs", "a", "-f", "-n", "0"]).ok().prints("").says("job a is completed");
    let texts: Vec<Value> =
        objects(&last(&["-n", "2", "--json"])).iter().map(|line| line["text"].clone()).collect();
    assert_eq!(texts, [json!("no\n"), json!("four")]);
}

#[test]
fn the_last_lines_of_a_long_log_are_the_same_as_those_of_all_of_it() {
    let home = Home::with_jobs(&["a"]);
    let lines: Vec<String> =
        (0..300_000).map(|line| format!("line {line} {}\n", "x".repeat(line % 61))).collect();
    let text = lines.concat();
    let chunks: Vec<(Stream, &[u8])> =
        text.as_bytes().chunks(1_013).map(|bytes| (Stream::Out, bytes)).collect();
    home.run_attempt(&chunks, Outcome::Success, LARGE_LOG_LIMIT);
    for count in [1, 3, 1_000, 20_000] {
        let expected = lines[lines.len() - count..].concat();
        home.run(["logs", "a", "-n", &count.to_string()]).ok().prints(&expected).says_nothing();
    }
    home.run(["logs", "a", "-n", "300001"]).ok().prints(&text);
}

#[test]
fn the_last_lines_of_a_cut_log_reach_back_over_the_cut() {
    let home = Home::with_jobs(&["a"]);
    let text = "0123456789\n".repeat(300_000);
    home.run_attempt(&[(Stream::Out, text.as_bytes())], Outcome::Success, 1 << 20);
    home.run(["logs", "a", "-n", "5"]).ok().prints(&"0123456789\n".repeat(5)).says_nothing();
    home.run(["logs", "a", "-n", "60000"]).ok().says("cut …]");
}

#[test]
fn each_line_can_begin_with_its_time() {
    let home = Home::that_printed(LINES);
    let ran = home.run(["logs", "a", "--timestamps"]).ok().says_nothing();
    let started = home.show("a")["started_at"].as_str().expect("a time").to_owned();
    let mut texts = Vec::new();
    for line in ran.lines() {
        let (at, text) = line.split_once(' ').expect("a time and a text");
        assert!(at.len() == 24 && at.ends_with('Z') && at >= started.as_str(), "{line}");
        texts.push(text);
    }
    assert_eq!(texts, ["one", "two", "oh", "three", "no", "four"], "a line ends, even the last");
}

#[test]
fn all_attempts_can_be_shown_with_a_heading_each() {
    let home = Home::with_attempts(&[
        (&[(Stream::Err, b"first\n")], FAILURE),
        (&[], FAILURE),
        (&[(Stream::Out, b"third\n")], Outcome::Success),
    ]);
    let ran = home.run(["logs", "a", "--all"]).ok().prints("first\nthird\n");
    assert_eq!(
        ran.stderr,
        "attempt 1: exit code 1: first, took 2s\nattempt 2: exit code 1, took 2s\nattempt 2 printed nothing\n\
         attempt 3: success, took 2s\n"
    );
    home.run(["logs", "a", "--all", "-q"]).ok().says_nothing();
    home.run(["logs", "a", "--all", "-f"])
        .ok()
        .prints("first\nthird\n")
        .says("attempt 1: exit code 1: first");
    let attempts: Vec<Value> =
        objects(&home.run(["logs", "a", "--all", "--json"]).ok().says_nothing().stdout);
    assert_eq!(attempts.iter().map(|line| &line["attempt"]).collect::<Vec<_>>(), [&json!(1), &json!(3)]);
}

#[test]
fn each_line_of_several_jobs_begins_with_its_job() {
    let home = Home::new();
    home.job_that_printed("a", "many", LINES);
    home.job_that_printed("longer", "many", &[(Stream::Out, b"hello\n")]);
    home.run(["enqueue", "-q", "--id", "waits", "--batch", "other", "--", "x"]).ok();
    let expected = "a      | one\na      | two\na      | oh\na      | three\na      | no\na      | four\nlonger | hello\n";
    home.run(["logs", "a", "longer"]).ok().prints(expected).says_nothing();
    home.run(["logs", "--batch", "many"]).ok().prints(expected).says_nothing();
    let followed = home.run(["logs", "--batch", "many", "-f"]).ok().says("a: job a is completed");
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&followed.stdout), sorted(expected));
    home.run(["logs", "a", "longer", "-n", "1"]).ok().prints("a      | four\nlonger | hello\n");
    let ran = home.run(["logs", "a", "longer", "--json"]).ok();
    let jobs: Vec<Value> = objects(&ran.stdout).iter().map(|line| line["job"].clone()).collect();
    assert_eq!((jobs.first(), jobs.last()), (Some(&json!("a")), Some(&json!("longer"))));
    home.run(["logs", "a", "a"]).ok().shows("a | four\n");
    home.run(["logs", "longer", "waits"])
        .ok()
        .prints("longer | hello\n")
        .says("waits: job waits has not run yet");
    home.run(["logs", "longer", "nope"]).fails(3).prints("longer | hello\n").says("there is no job `nope`");
    home.run(["logs", "a", "longer", "--attempt", "1"]).fails(2).says("--attempt needs exactly one job");
    home.run(["logs", "--batch", "nope"]).fails(3).says("there is no batch `nope`");
    home.run(["logs", "a", "b/c"]).fails(2).prints("");
}

#[test]
fn several_jobs_are_followed_until_all_have_finished() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    let first = worker.claim_job("a");
    let mut following = home.call(["logs", "a", "b", "-f"]).spawn();
    let mut capture = worker.capture(&home, &first, LARGE_LOG_LIMIT);
    capture.take(Stream::Out, b"hello\n");
    worker.settle_captured(first, Outcome::Success, capture.finish());
    let second = worker.claim_job("b");
    let mut capture = worker.capture(&home, &second, LARGE_LOG_LIMIT);
    capture.take(Stream::Err, b"world");
    worker.settle_captured(second, Outcome::Success, capture.finish());
    drop(following.stdin.take());
    let output = following.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a | hello\nb | world\n");
    assert!(output.status.success());
}

#[test]
fn colors_are_shown_on_a_terminal_only() {
    let printed = b"\x1b[32mgreen\x1b[0m \x1b[2Jx \x1b[1;31mleft on\n";
    let home = Home::that_printed(&[(Stream::Out, printed)]);
    let seen = on_terminal(home.logs(&[]), 100, "").screen;
    assert_eq!(seen, "\u{1b}[32mgreen\u{1b}[0m \\u{1b}[2Jx \u{1b}[1;31mleft on\n\u{1b}[0m");
    let plain = "green \\u{1b}[2Jx left on\n";
    assert_eq!(on_terminal(home.logs(&["--color", "never"]), 100, "").screen, plain);
    let without = home.call(["logs", "a"]).env("NO_COLOR", "1").into_command();
    assert_eq!(on_terminal(without, 100, "").screen, plain);
    let ran = home.logs(&[]).output().expect("it runs");
    assert_eq!(ran.stdout, printed, "unchanged in a pipe");
}
