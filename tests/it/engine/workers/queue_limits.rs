//! Limits of queues, with workers that run real commands and prefetch.

use crate::engine::harness::{Home, Pool, millis_between};

/// Records how many jobs are in the `room` folder while it is there itself.
const ENTER: &str =
    "mkdir -p room; touch room/$QUEUECTL_JOB_ID; ls room | wc -l >> crowds; rm room/$QUEUECTL_JOB_ID";

/// Enqueues `count` jobs with one call.
fn enqueue(home: &Home, name: &str, count: usize, command: &str, queue: &str) {
    let lines: String = (0..count)
        .map(|at| {
            let id = format!("{name}-{at}");
            serde_json::json!({ "id": id, "command": command, "queue": queue }).to_string() + "\n"
        })
        .collect();
    let file = home.file(&format!("{name}.jsonl"), lines);
    home.run(["enqueue", "-q", "--file", file.to_str().expect("UTF-8")]).ok();
}

fn limit(home: &Home, queue: &str, limits: &[&str]) {
    home.run(["queue", "set", queue].iter().chain(limits)).ok();
}

/// How long after the creation of job `since` the last of these jobs finished.
fn finished(home: &Home, name: &str, count: usize, since: &str) -> i64 {
    let begin = &home.show(since)["created_at"];
    let ends = (0..count).map(|at| millis_between(begin, &home.show(&format!("{name}-{at}"))["finished_at"]));
    ends.max().expect("there are some")
}

#[test]
fn several_workers_that_prefetch_never_exceed_a_limit() {
    let home = Home::new();
    limit(&home, "narrow", &["--concurrency", "2"]);
    enqueue(&home, "plain", 200, "true", "default");
    enqueue(&home, "narrow", 60, ENTER, "narrow");
    enqueue(&home, "more", 200, "true", "default");
    Pool::drain(&home, "--count 2 --concurrency 4");
    let crowds: Vec<usize> =
        home.read("crowds").lines().map(|count| count.trim().parse().expect("a number")).collect();
    assert_eq!(crowds.len(), 60);
    assert!(crowds.iter().all(|crowd| (1..=2).contains(crowd)), "{crowds:?}");
}

#[test]
fn a_limited_queue_is_served_during_a_stream_of_short_jobs() {
    let home = Home::new();
    limit(&home, "narrow", &["--concurrency", "1"]);
    enqueue(&home, "narrow", 10, "true", "narrow");
    enqueue(&home, "plain", 1_500, "true", "default");
    Pool::drain(&home, "--concurrency 2");
    let narrow = finished(&home, "narrow", 10, "narrow-0");
    let plain = millis_between(&home.show("narrow-0")["created_at"], &home.show("plain-1499")["finished_at"]);
    assert!(narrow < plain, "{narrow} ms, and {plain} ms for later jobs");
}

#[test]
fn many_jobs_in_a_limited_queue_do_not_block_other_queues() {
    let home = Home::new();
    limit(&home, "narrow", &["--concurrency", "1"]);
    enqueue(&home, "narrow", 20, "until [ -e go ]; do sleep 0.01; done", "narrow");
    enqueue(&home, "plain", 40, "true", "default");
    let _pool = Pool::run(&home, "--concurrency 2");
    for at in 0..40 {
        home.wait_for(&format!("plain-{at}"), "completed");
    }
    assert_eq!(home.state_of("narrow-0"), "processing", "the earlier jobs still wait for it");
    home.file("go", "");
    home.wait_for("narrow-19", "completed");
}

#[test]
fn an_idle_worker_starts_a_job_when_the_rate_allows_it() {
    let home = Home::new();
    limit(&home, "slow", &["--rate", "2/600ms"]);
    enqueue(&home, "slow", 5, "true", "slow");
    Pool::drain_without_polling(&home, "--concurrency 4");
    // A claim precedes its start, so times are measured from before the pool was started.
    let began = home.show("slow-4")["created_at"].clone();
    let starts: Vec<i64> =
        (0..5).map(|at| millis_between(&began, &home.show(&format!("slow-{at}"))["started_at"])).collect();
    for (start, earliest) in starts.iter().zip([0, 0, 300, 600, 900]) {
        assert!(*start >= earliest, "{starts:?}");
    }
}

#[test]
fn another_worker_starts_the_next_job_of_a_full_queue() {
    let home = Home::new();
    limit(&home, "narrow", &["--concurrency", "1"]);
    enqueue(&home, "narrow", 1, "until [ -e go ]; do sleep 0.01; done", "narrow");
    let _pool = Pool::run_without_polling(&home, "--queue narrow");
    home.wait_for("narrow-0", "processing");
    let _other = Pool::run_without_polling(&home, "--queue narrow,default");
    enqueue(&home, "next", 1, "true", "narrow");
    enqueue(&home, "plain", 1, "true", "default");
    home.wait_for("plain-0", "completed");
    assert_eq!(home.state_of("next-0"), "pending", "the queue is full");
    home.file("go", "");
    let next = home.wait_for("next-0", "completed");
    assert!(millis_between(&home.show("narrow-0")["finished_at"], &next["started_at"]) >= 0, "{next}");
}

/// Each of the two jobs waits for the other, so they must run concurrently: a job that a busy worker had prefetched
/// would be released and have a second attempt.
#[test]
fn a_busy_worker_does_not_prefetch_jobs_of_a_limited_queue() {
    let home = Home::new();
    limit(&home, "pairs", &["--concurrency", "2"]);
    let _pool = Pool::run(&home, "--count 2 --concurrency 1");
    for round in 0..3 {
        // Short jobs, so that both workers would prefetch.
        enqueue(&home, &format!("short-{round}"), 60, "true", "default");
        for at in 0..60 {
            home.wait_for(&format!("short-{round}-{at}"), "completed");
        }
        let pair = format!("pair-{round}");
        let meet =
            format!("touch $QUEUECTL_JOB_ID; until [ -e {pair}-0 ] && [ -e {pair}-1 ]; do sleep 0.01; done");
        enqueue(&home, &pair, 2, &meet, "pairs");
        for at in 0..2 {
            let job = home.wait_for(&format!("{pair}-{at}"), "completed");
            assert_eq!(job["attempts"], 1, "{job}");
        }
    }
}
