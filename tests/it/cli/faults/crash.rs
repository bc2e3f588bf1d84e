//! Fault 27: kill -9 at any moment of `enqueue`. Every printed job exists, and the database is intact.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use domain::values::name::JobId;
use rusqlite::Connection;

use crate::cli::harness::{Call, Home};

/// Random moments, the same in every run.
struct Moments {
    random: fastrand::Rng,
    span: Duration,
}

impl Moments {
    /// Moments within twice the duration of a whole run, so that about half of the runs are killed.
    fn within_twice(whole_run: Duration) -> Self {
        Self { random: fastrand::Rng::with_seed(27), span: whole_run * 2 }
    }

    fn kill_at_one(&mut self, child: &mut Child) {
        // Not synchronisation: this is the moment of the crash.
        std::thread::sleep(self.span.mul_f64(self.random.f64()));
        child.kill().expect("it is ours to kill");
    }
}

/// The ids that were printed completely.
fn printed(child: &mut Child) -> Vec<JobId> {
    let mut text = String::new();
    child.stdout.take().expect("stdout is a pipe").read_to_string(&mut text).expect("stdout is text");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|id| id.parse().expect("an id")).collect()
}

fn assert_all_exist(home: &Home, ids: &[JobId]) {
    let there = home.store().existing_ids(ids).expect("ids are looked up");
    assert_eq!(there.len(), ids.len(), "acknowledged jobs are missing: {ids:?}, there are {there:?}");
}

pub(crate) fn assert_sound(home: &Home) {
    let connection = Connection::open(home.database()).expect("the database opens");
    let check: String =
        connection.query_row("pragma integrity_check", [], |row| row.get(0)).expect("the check runs");
    assert_eq!(check, "ok");
}

fn time_of(call: Call) -> Duration {
    let began = Instant::now();
    call.run().ok();
    began.elapsed()
}

#[test]
fn fault_27_an_id_that_was_printed_exists_after_kill_9() {
    const ROUNDS: usize = 80;
    let home = Home::with_jobs(&["first"]);
    let call = || home.call(["enqueue", "--", "true"]);
    let mut moments = Moments::within_twice(time_of(call()));
    let mut cut_short = 0;
    for _ in 0..ROUNDS {
        let mut child = call().spawn();
        moments.kill_at_one(&mut child);
        let ids = printed(&mut child);
        child.wait().expect("it is gone");
        cut_short += usize::from(ids.is_empty());
        assert_all_exist(&home, &ids);
    }
    assert_sound(&home);
    assert!(cut_short > 0, "no run was killed in time: the test proves nothing");
    home.run(["enqueue", "--", "true"]).ok();
}

#[test]
fn fault_27_the_first_use_of_a_home_survives_kill_9() {
    const ROUNDS: usize = 25;
    let whole_run = time_of(Home::new().call(["enqueue", "--", "true"]));
    let mut moments = Moments::within_twice(whole_run);
    for _ in 0..ROUNDS {
        let home = Home::new();
        let mut child = home.call(["enqueue", "--", "true"]).spawn();
        moments.kill_at_one(&mut child);
        let ids = printed(&mut child);
        child.wait().expect("it is gone");
        home.run(["enqueue", "--id", "next", "--", "true"]).ok().prints("next\n");
        assert_all_exist(&home, &ids);
        assert_sound(&home);
    }
}

#[test]
fn fault_27_enqueuing_a_stream_keeps_the_printed_jobs_after_kill_9() {
    const ROUNDS: usize = 30;
    let home = Home::with_jobs(&["first"]);
    let whole_run = time_of(home.call(["enqueue", "-"]).with_stdin("{\"command\":\"true\"}\n"));
    let mut moments = Moments::within_twice(whole_run * 2);
    let mut kept = 0;
    for _ in 0..ROUNDS {
        let mut child = home.call(["enqueue", "-"]).spawn();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let ids = std::thread::scope(|scope| {
            let feeder = scope.spawn(|| feed_until_killed(stdin.expect("a pipe"), stdout.expect("a pipe")));
            moments.kill_at_one(&mut child);
            feeder.join().expect("the feeder ends")
        });
        child.wait().expect("it is gone");
        kept += ids.len();
        assert_all_exist(&home, &ids);
    }
    assert_sound(&home);
    assert!(kept > 0, "nothing was ever printed: the test proves nothing");
}

/// A few lines, then their ids, then the next lines: each turn is a chunk.
fn feed_until_killed(mut stdin: impl Write, stdout: impl Read) -> Vec<JobId> {
    let lines = "{\"command\":\"true\"}\n".repeat(7);
    let mut answers = BufReader::new(stdout);
    let mut ids = Vec::new();
    while stdin.write_all(lines.as_bytes()).is_ok() {
        for _ in 0..7 {
            let mut id = String::new();
            let read = answers.read_line(&mut id).expect("stdout is text");
            if read == 0 || !id.ends_with('\n') {
                return ids;
            }
            ids.push(id.trim_end().parse().expect("an id"));
        }
    }
    ids
}

#[test]
fn fault_27_enqueuing_a_file_survives_kill_9_whole_or_not_at_all() {
    const ROUNDS: usize = 25;
    const LINES: usize = 50;
    let home = Home::with_jobs(&["first"]);
    home.file("jobs.jsonl", "{\"command\":\"true\"}\n".repeat(LINES));
    let call = || home.call(["enqueue", "--file", "jobs.jsonl"]);
    let mut moments = Moments::within_twice(time_of(call()));
    for _ in 0..ROUNDS {
        let mut child = call().spawn();
        moments.kill_at_one(&mut child);
        let ids = printed(&mut child);
        child.wait().expect("it is gone");
        assert_all_exist(&home, &ids);
    }
    assert_sound(&home);
    assert_eq!(home.count() % LINES, 1, "one chunk is all or nothing");
}
