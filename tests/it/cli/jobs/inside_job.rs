//! Calls from inside a job: none may wait for something that can only happen after that job has ended.

use serde_json::json;

use crate::cli::harness::PROGRAM;
use crate::cli::harness::background::Background;
use crate::cli::harness::working_home::{WorkingHome, wait_until};

/// A home with a pool of this many slots.
fn home(slots: &str) -> WorkingHome {
    let home = WorkingHome::new();
    home.run(["worker", "start", "--concurrency", slots]).ok();
    home
}

/// Enqueues a shell line in which `@` stands for this program.
fn enqueue(home: &WorkingHome, id: &str, flags: &[&str], line: &str) {
    let line = line.replace('@', PROGRAM);
    let args = ["enqueue", "-q", "--id", id, "--max-retries", "0", "--command", &line];
    home.run(args.iter().chain(flags)).ok();
}

/// Waits for a job and returns its output on both streams.
#[track_caller]
fn output(home: &WorkingHome, id: &str) -> String {
    home.run(["wait", "-q", id, "--timeout", "30s"]).ok();
    home.run(["logs", id]).ok().stdout
}

#[test]
fn fault_43_run_inside_a_job_of_a_full_pool_gets_a_worker_of_its_own() {
    let home = home("1");
    enqueue(&home, "p", &[], "@ run --id c -- echo inner");
    assert_eq!(output(&home, "p"), "inner\n");
    assert_ne!(home.worker_of("p"), home.worker_of("c"));
}

#[test]
fn fault_43_run_inside_run_inside_run_ends() {
    let home = home("1");
    enqueue(&home, "p", &[], "@ run --id c -- @ run --id d -- echo innermost");
    assert_eq!(output(&home, "p"), "innermost\n");
}

#[test]
fn fault_43_a_pool_whose_slots_all_wait_makes_progress() {
    let home = home("2");
    // Both run before either waits, so no slot is left.
    let line = |own: &str, other: &str| {
        format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done; @ run -- echo {own}")
    };
    enqueue(&home, "p", &[], &line("one", "two"));
    enqueue(&home, "q", &[], &line("two", "one"));
    assert_eq!((output(&home, "p").as_str(), output(&home, "q").as_str()), ("one\n", "two\n"));
}

#[test]
fn fault_43_waiting_inside_a_job_of_a_full_pool_lends_its_slot() {
    let home = home("1");
    let enqueue_two = "@ enqueue -q --batch b --id c -- echo first; \
                       @ enqueue -q --batch b --id d --depends-on c -- echo second;";
    for (id, wait) in [("p", "@ wait -q d c"), ("q", "@ batch wait -q b"), ("r", "@ logs -f d")] {
        enqueue(&home, id, &[], &format!("{enqueue_two} {wait} && echo waited"));
        assert!(output(&home, id).contains("waited\n"), "{wait}");
        home.run(["remove", "c", "d", "--yes"]).ok();
    }
}

#[test]
fn fault_43_waiting_for_a_job_that_depends_on_the_caller_is_refused() {
    let home = home("1");
    home.run(["queue", "set", "narrow", "--concurrency", "1"]).ok();
    enqueue(
        &home,
        "p",
        &["--queue", "narrow", "--batch", "b"],
        "until [ -e go ]; do sleep 0.02; done; . ./script",
    );
    enqueue(&home, "d", &["--depends-on", "p"], "true");
    enqueue(&home, "n", &["--queue", "narrow"], "true");
    let refused = [
        ("wait p", "job `p` cannot wait for itself"),
        ("wait d", "job `p` cannot wait for job `d`, which depends on it"),
        ("logs -f p", "job `p` cannot wait for itself"),
        ("logs -f d", "job `p` cannot wait for job `d`, which depends on it"),
        ("batch wait b", "job `p` cannot wait for itself"),
        ("run --depends-on d -- true", "job `p` cannot wait for job `d`, which depends on it"),
        ("run --id d --if-absent -- true", "job `p` cannot wait for job `d`, which depends on it"),
        ("run --queue narrow -- true", "queue `narrow` runs one job at a time, and job `p` occupies it"),
        ("wait n", "queue `narrow` runs one job at a time, and job `p` occupies it"),
        (
            "worker run --until-empty",
            "cannot become empty while job `p`, which runs this command, is running",
        ),
    ];
    let script: Vec<String> =
        refused.iter().map(|(call, _)| format!("{PROGRAM} {call} 2>&1; echo $?\n")).collect();
    home.file("script", script.concat());
    let count = home.count();
    home.go();
    let said = output(&home, "p");
    let mut lines = said.lines();
    for (call, message) in refused {
        let error = lines.next().unwrap_or_default();
        assert!(error.starts_with("error: ") && error.contains(message), "`{call}`: {error}\n{said}");
        let hint = lines.next().unwrap_or_default();
        assert!(hint.starts_with("hint: "), "`{call}`: {hint}\n{said}");
        assert_eq!(lines.next(), Some("4"), "`{call}`\n{said}");
    }
    assert_eq!(home.count(), count, "nothing was stored");
}

#[test]
fn fault_43_a_queue_full_of_waiting_jobs_prints_a_hint() {
    let home = home("2");
    home.run(["queue", "set", "two", "--concurrency", "2"]).ok();
    let line = |own: &str, other: &str| {
        format!(
            "touch {own}; until [ -e {other} ]; do sleep 0.02; done; @ run --id in-{own} --queue two -- true"
        )
    };
    enqueue(&home, "p", &["--queue", "two"], &line("one", "two"));
    enqueue(&home, "q", &["--queue", "two"], &line("two", "one"));
    let hint = "hint: job in-one cannot start because queue two is full, and job p, which waits for it, runs in the same queue";
    wait_until("it is said", || home.run(["logs", "p"]).stdout.contains(hint));
    home.run(["queue", "set", "two", "--concurrency", "3"]).ok();
    output(&home, "p");
    output(&home, "q");
}

#[test]
fn a_job_that_is_not_running_this_attempt_is_not_the_caller() {
    let home = WorkingHome::new();
    enqueue(&home, "p", &[], "true");
    let call = home.call(["wait", "p", "--timeout", "10ms"]);
    let call = call.env("QUEUECTL_JOB_ID", "p").env("QUEUECTL_ATTEMPT", "1").env("QUEUECTL_WORKER_ID", "w1");
    assert_eq!(call.run().status.code(), Some(124));
}

#[test]
fn fault_43_worker_stop_inside_a_job_waits_for_all_others() {
    let home = home("2");
    enqueue(&home, "o", &[], "until [ -e go ]; do sleep 0.02; done");
    home.wait_for_state("o", "processing");
    enqueue(&home, "p", &[], "@ worker stop 2>&1; echo $?; @ show o --json | grep -o '\"state\":\"[a-z]*'");
    enqueue(&home, "late", &[], "true");
    wait_until("the pool drains", || home.run(["worker", "list"]).ok().stdout.contains("draining"));

    let reasons = home.run(["explain", "late", "--json"]).ok().json()["reasons"].clone();
    assert_eq!(reasons[0]["code"], json!("draining"), "{reasons}");
    let problems = home.run(["status", "--json"]).ok().json()["problems"].to_string();
    assert!(
        problems.contains("draining") && problems.contains("in job p") && problems.contains("o, p"),
        "{problems}"
    );

    home.go();
    home.wait_until_deserted();
    let said = home.run(["logs", "p"]).ok().stdout;
    assert_eq!(
        said,
        "1 worker will stop when these waiting jobs have finished: p\n0\n\"state\":\"completed\n"
    );
}

#[test]
fn fault_43_two_jobs_that_stop_the_workers_at_once_both_end() {
    let home = home("2");
    let line = |own: &str, other: &str| {
        format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done; @ worker stop -q")
    };
    enqueue(&home, "p", &[], &line("one", "two"));
    enqueue(&home, "q", &[], &line("two", "one"));
    home.wait_for_state("p", "completed");
    home.wait_for_state("q", "completed");
    home.wait_until_deserted();
}

#[test]
fn fault_43_worker_stop_inside_a_job_that_another_waits_for_ends() {
    let home = home("1");
    enqueue(&home, "p", &[], "@ run --id c -- @ worker stop && echo stopped");
    home.wait_for_state("p", "completed");
    home.run(["logs", "--stdout", "p"]).ok().shows("stopped\n");
    home.wait_until_deserted();
}

#[test]
fn worker_stop_now_inside_a_job_releases_that_job() {
    let home = home("1");
    enqueue(&home, "p", &[], "@ worker stop --now; until [ -e go ]; do sleep 0.02; done");
    home.wait_until_deserted();
    assert_eq!(home.state_of("p"), "pending");
    assert_eq!(home.show("p")["history"][0]["outcome"], "released");
}

#[test]
fn a_job_may_cancel_itself_and_cannot_restore_the_queue() {
    let home = home("1");
    home.run(["backup", "copy.db"]).ok();
    enqueue(
        &home,
        "p",
        &[],
        "@ restore --yes copy.db 2>&1; echo $?; @ cancel p; until [ -e go ]; do sleep 0.02; done",
    );
    home.wait_for_state("p", "cancelled");
    let said = home.run(["logs", "p"]).ok().stdout;
    assert!(said.contains("run restore outside of job `p`") && said.contains("\n4\n"), "{said}");
}

#[test]
fn workers_started_inside_a_job_print_a_hint_that_they_end_with_it() {
    let home = home("1");
    enqueue(&home, "p", &[], "@ worker start --queue other");
    assert!(output(&home, "p").contains("hint: they stop when job p, which started them, ends"));
}

#[test]
fn waiting_prints_a_hint_if_all_workers_drain() {
    let home = home("1");
    enqueue(&home, "o", &[], "until [ -e go ]; do sleep 0.02; done");
    home.wait_for_state("o", "processing");
    let stopping = Background::start(home.call(["worker", "stop"]));
    wait_until("the pool drains", || home.run(["worker", "list"]).ok().stdout.contains("draining"));
    home.run(["enqueue", "--id", "late", "--", "true"]).ok().says("all workers are draining");
    let waiting = Background::start(home.call(["wait", "late"]));
    assert!(waiting.says().contains("all workers are draining"));
    home.go();
    drop(waiting);
    assert_eq!(stopping.end().0.code(), Some(0));
}

#[test]
fn the_calling_job_is_left_out_where_no_job_is_named() {
    let home = home("2");
    enqueue(&home, "o", &[], "until [ -e go ]; do sleep 0.02; done");
    enqueue(&home, "p", &[], "until [ -e go ]; do sleep 0.02; done; @ wait -q; echo wait gave $?");
    enqueue(&home, "d", &["--depends-on", "p"], "echo dependent");
    home.file("go", "");
    assert_eq!(output(&home, "p"), "wait gave 0\n");
    assert_eq!(output(&home, "d"), "dependent\n");
    enqueue(&home, "f", &[], "@ logs -f");
    let followed = output(&home, "f");
    assert!(followed.contains("dependent\n"), "the latest other job: {followed}");
}
