//! What is recorded: a queue from its first use on, with many enqueuers and with workers that drain it meanwhile.

use super::recording::{Recording, Stream, Workers};

/// Long enough that a few of them fill many pages.
const LONG: usize = 6_000;
/// Prints more than is kept in the database.
const LOUD: &str = "head -c 50000 /dev/zero";
const CHUNKS: usize = 16;
const JOBS_PER_CHUNK: usize = 12;

/// Enqueuing by one process after the other, and by one for many.
pub fn enqueue_only(recording: &Recording) {
    for number in 0..6 {
        recording.enqueue(&format!("single-{number}"), "true");
    }
    let mut stream = Stream::open(recording);
    for chunk in 0..6 {
        stream.send(&jobs(chunk));
    }
    stream.close();
}

/// Several processes on a home that is not there yet.
pub fn first_use_by_many(recording: &Recording) {
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || recording.enqueue(&format!("at-once-{number}"), "true"));
        }
    });
}

/// Everything at once.
pub fn busy_queue(recording: &Recording) {
    enqueue_only(recording);
    let workers = Workers::start(recording);
    std::thread::scope(|scope| {
        scope.spawn(|| stream(recording));
        scope.spawn(|| settle(recording));
        scope.spawn(|| change(recording));
    });
    workers.stop();
    leave_a_short_log(recording);
}

fn stream(recording: &Recording) {
    let mut stream = Stream::open(recording);
    for chunk in 0..CHUNKS {
        stream.send(&jobs(100 + chunk));
    }
    stream.close();
}

/// Jobs whose end somebody has seen.
fn settle(recording: &Recording) {
    for round in 0..4 {
        let ids: Vec<String> = (0..3).map(|number| format!("settled-{round}-{number}")).collect();
        for id in &ids {
            recording.enqueue(id, if round == 0 { LOUD } else { "true" });
        }
        recording.run("wait", ["wait"].into_iter().chain(ids.iter().map(String::as_str)));
    }
}

/// What people do to jobs and settings.
fn change(recording: &Recording) {
    for (key, value) in [("max_retries", "5"), ("crash_limit", "7")] {
        recording.run(&format!("set {key} {value}"), ["config", "set", key, value]);
        for verb in ["cancel", "retry"] {
            let id = format!("{verb}-{key}");
            recording.run("enqueue", ["enqueue", "--id", &id, "--delay", "1h", "--", "true"]);
            if verb == "retry" {
                recording.run("", ["cancel", &id]);
            }
            recording.run(&format!("{verb} {id}"), [verb, &id]);
        }
    }
}

/// One process that has the queue for itself and does not leave a long log behind; then others that go on with it.
fn leave_a_short_log(recording: &Recording) {
    let mut stream = Stream::open(recording);
    stream.send(&(0..12).flat_map(|chunk| jobs(200 + chunk)).collect::<Vec<_>>());
    stream.close();
    for number in 0..4 {
        recording.enqueue(&format!("last-{number}"), "true");
    }
}

/// Jobs with ids and commands that no other chunk has.
fn jobs(chunk: usize) -> Vec<(String, String)> {
    let job = |number: usize| {
        let padding = if number == 0 { "x".repeat(LONG) } else { String::new() };
        (format!("chunk-{chunk}-{number}"), format!("true {padding}"))
    };
    (0..JOBS_PER_CHUNK).map(job).collect()
}
