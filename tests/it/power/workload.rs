//! The recorded workload: a queue from its first use on, with many enqueuing processes and concurrent workers.

use super::recording::{Recording, Stream, Workers};

/// Long enough that a few such commands fill many pages.
const LONG: usize = 6_000;
/// Prints more output than the database stores.
const LOUD: &str = "head -c 50000 /dev/zero";
const CHUNKS: usize = 16;
const JOBS_PER_CHUNK: usize = 12;

/// Enqueues jobs with one process each, and many with one process.
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

/// Several processes use a home that does not exist yet.
pub fn first_use_by_many(recording: &Recording) {
    std::thread::scope(|scope| {
        for number in 0..8 {
            scope.spawn(move || recording.enqueue(&format!("at-once-{number}"), "true"));
        }
    });
}

/// All kinds of calls concurrently.
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

/// Jobs that `wait` reports as completed.
fn settle(recording: &Recording) {
    for round in 0..4 {
        let ids: Vec<String> = (0..3).map(|number| format!("settled-{round}-{number}")).collect();
        for id in &ids {
            recording.enqueue(id, if round == 0 { LOUD } else { "true" });
        }
        recording.run("wait", ["wait"].into_iter().chain(ids.iter().map(String::as_str)));
    }
}

/// Changes of jobs and settings.
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

/// One process with exclusive use of the queue, which leaves a short log; then others that continue with it.
fn leave_a_short_log(recording: &Recording) {
    let mut stream = Stream::open(recording);
    stream.send(&(0..12).flat_map(|chunk| jobs(200 + chunk)).collect::<Vec<_>>());
    stream.close();
    for number in 0..4 {
        recording.enqueue(&format!("last-{number}"), "true");
    }
}

/// Jobs with ids and commands that are unique to the chunk.
fn jobs(chunk: usize) -> Vec<(String, String)> {
    let job = |number: usize| {
        let padding = if number == 0 { "x".repeat(LONG) } else { String::new() };
        (format!("chunk-{chunk}-{number}"), format!("true {padding}"))
    };
    (0..JOBS_PER_CHUNK).map(job).collect()
}
