use std::time::Duration;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use store::{Pause, ServedJobs};

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;
use crate::cli::harness::working_home::WorkingHome;

#[test]
fn a_worker_for_one_job_does_not_count_for_other_jobs() {
    let home = Home::with_jobs(&["a", "b"]);
    let _worker = TestWorker::for_job(&home, "w1", "a");
    home.run(["enqueue", "--id", "c", "--", "true"]).ok().says("hint: no worker is running");
    home.run(["status"]).ok().shows("! 2 jobs wait, but no worker is running");
    home.run(["remove", "--yes", "b", "c"]).ok();
    home.run(["status"]).ok().shows_no("!");
}

#[test]
fn an_empty_queue_is_all_zeros() {
    let home = Home::with_queue();
    let zeros =
        json!({"pending": 0, "processing": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 0});
    let mut status = home.run(["status", "--json"]).ok().says_nothing().json();
    let mut hour =
        status.as_object_mut().and_then(|fields| fields.remove("last_hour")).expect("the last hour");
    assert!(
        hour.as_object_mut().and_then(|fields| fields.remove("since")).is_some_and(|since| since.is_string())
    );
    let idle = json!({"started": 0, "finished": 0, "finished_per_minute": 0.0, "died": 0, "wait_p50_ms": null,
                      "wait_p95_ms": null, "run_p50_ms": null, "run_p95_ms": null});
    assert_eq!(hour, idle);
    assert_eq!(status, json!({"jobs": zeros, "queues": [], "workers": [], "problems": []}));
}

#[test]
fn queues_have_their_own_counts() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["enqueue", "-q", "--queue", "mail", "--", "true"]).ok();
    home.run(["cancel", "a"]).ok();
    let status = home.run(["status", "--json"]).ok().json();
    let counts =
        json!({"pending": 1, "processing": 0, "completed": 0, "failed": 0, "dead": 0, "cancelled": 1});
    let queue = json!({"name": "default", "paused": false, "paused_at": null, "paused_by": null,
                       "pause_reason": null, "concurrency": null, "rate": null, "next_start_at": null,
                       "limits": null, "retry_on": null, "no_retry_on": null, "jobs": counts});
    assert_eq!(status["queues"][0], queue);
    assert_eq!(status["queues"][1]["jobs"]["pending"], 1);
    assert_eq!((&status["jobs"]["pending"], &status["jobs"]["cancelled"]), (&json!(2), &json!(1)));
}

#[test]
fn a_worker_has_the_documented_shape() {
    let home = Home::with_jobs(&["a", "b"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    let mut shown = home.run(["status", "--json"]).ok().json()["workers"][0].take();
    for field in ["started_at", "last_heartbeat"] {
        assert!(shown[field].take().is_string(), "{field}");
    }
    let expected = json!({"id": "w1", "pid": 4242, "supervisor_pid": null, "host": "testhost", "queues": null,
                          "concurrency": 1, "running": 1, "state": "running", "started_at": null,
                          "last_heartbeat": null});
    assert_eq!(shown, expected);
    home.run(["status"]).ok().shows("w1      running      1/1  4242").shows_no("no worker");
}

#[test]
fn a_worker_for_one_job_serves_no_queue() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::for_job(&home, "w1", "a");
    assert_eq!(home.run(["status", "--json"]).ok().json()["workers"][0]["queues"], json!([]));
    home.run(["status"]).ok().shows("job a");
    worker.claim_job("a");
}

#[test]
fn status_prints_a_table_of_the_states() {
    let home = Home::with_jobs(&["a", "b"]);
    home.run(["status"]).ok().says_nothing().prints(
        "QUEUE    PENDING  PROCESSING  COMPLETED  FAILED  DEAD  CANCELLED\n\
         default        2           0          0       0     0          0\n\
         \n\
         ! 2 jobs wait, but no worker is running; start one with `queuectl worker start`\n",
    );
    home.run(["status", "-q"]).ok().prints("");
}

#[test]
fn a_check_prints_only_problems_and_says_by_its_exit_code_whether_there_are_any() {
    let home = Home::with_jobs(&["a"]);
    let message = "1 job waits, but no worker is running; start one with `queuectl worker start`";
    let fails = |args: &[&str]| {
        let ran = home.run(["status", "--check"].iter().chain(args)).says_nothing();
        assert_eq!(ran.status.code(), Some(1), "{ran}");
        ran
    };
    fails(&[]).prints(&format!("! {message}\n"));
    fails(&["-q"]).prints("");
    assert_eq!(fails(&["--json"]).json(), json!([{"problem": "no_worker", "message": message}]));
    home.run(["remove", "a"]).ok();
    home.run(["status", "--check"]).ok().prints("").says_nothing();
    home.run(["status", "--check", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["status", "--check", "--watch"]).fails(2).prints("");
    let seen = on_terminal(home.call(["status", "--check", "--color", "never"]).into_command(), 100, "");
    assert_eq!((seen.screen.as_str(), seen.code), ("no problems\n", Some(0)));
}

#[test]
fn schedules_that_fire_nothing_are_problems() {
    let home = Home::new();
    home.run(["schedule", "add", "-q", "s", "--cron", "@daily", "--", "true"]).ok();
    let message = "1 schedule is active and no worker is running; start one with `queuectl worker start`";
    assert_eq!(problems(&home), json!([{"problem": "schedule_no_worker", "message": message}]));
    home.call(["schedule", "pause", "-q", "s", "--reason", "the disk is full"]).env("USER", "ada").run().ok();
    let message =
        "schedule s was paused by ada (the disk is full); resume it with `queuectl schedule resume s`";
    assert_eq!(problems(&home), json!([{"problem": "schedule_paused", "message": message}]));
    home.run(["schedule", "resume", "-q", "s"]).ok();
    let _worker = TestWorker::new(&home, "w1");
    assert_eq!(problems(&home), json!([]));
}

fn problems(home: &Home) -> Value {
    home.run(["status", "--json"]).ok().json()["problems"].take()
}

#[test]
fn problems_are_reported() {
    let home = Home::with_jobs(&["a"]);
    let message = "1 job waits, but no worker is running; start one with `queuectl worker start`";
    assert_eq!(problems(&home), json!([{"problem": "no_worker", "message": message}]));

    let _worker = TestWorker::new(&home, "w1");
    assert_eq!(problems(&home), json!([]), "a worker runs");

    home.run(["config", "set", "durability", "normal"]).ok();
    assert_eq!(problems(&home)[0]["problem"], "durability_lowered");
    home.run(["config", "unset", "durability"]).ok();

    let pause = Pause { by: "ada".to_owned(), reason: Some("the disk is full".to_owned()) };
    home.store().pause_queue(&"default".parse().expect("a name"), &pause).expect("it is paused");
    let paused = problems(&home);
    assert_eq!(paused[0]["problem"], "queue_paused");
    let message = paused[0]["message"].as_str().expect("text");
    assert!(message.contains("ada") && message.contains("the disk is full"), "{message}");
    home.run(["status"]).ok().shows("default (paused)");
}

#[test]
fn a_worker_that_missed_its_heartbeats_is_a_problem() {
    let home = Home::new();
    let _workers = (TestWorker::new(&home, "w1"), TestWorker::new(&home, "w2"));
    home.run(["config", "set", "lease", "3h"]).ok();
    home.run(["config", "set", "heartbeat_interval", "1h"]).ok();
    home.silence("w2", Duration::from_secs(2 * 3_600));
    assert_eq!(problems(&home), json!([]), "three heartbeats take 3h");
    home.silence("w2", Duration::from_secs(4 * 3_600));
    let silent = problems(&home);
    assert_eq!((silent.as_array().map(Vec::len), &silent[0]["problem"]), (Some(1), &json!("silent_worker")));
    let message = silent[0]["message"].as_str().expect("text");
    assert!(message.starts_with("worker w2 has sent no heartbeat for 4h"), "{message}");
    home.run(["config", "set", "lease", "6h"]).ok();
    home.run(["config", "set", "heartbeat_interval", "2h"]).ok();
    assert_eq!(problems(&home), json!([]), "the setting says what is late");
}

fn messages(home: &Home) -> Vec<String> {
    let problems = problems(home);
    let text = |problem: &Value| format!("{}: {}", problem["problem"], problem["message"]).replace('"', "");
    problems.as_array().expect("an array").iter().map(text).collect()
}

#[test]
fn a_queue_that_no_worker_serves_is_a_problem() {
    let home = Home::with_jobs(&["a"]);
    home.run(["enqueue", "-q", "--queue", "mail", "--", "true"]).ok();
    let served = ServedJobs::InOrder(vec!["default".parse().expect("a name")]);
    let _worker = TestWorker::serving(&home, "w1", served);
    assert_eq!(
        messages(&home),
        ["queue_unserved: 1 job waits in queue mail, which no worker serves; \
             start one with `queuectl worker start --queue mail`"]
    );
    let _other = TestWorker::new(&home, "w2");
    assert_eq!(problems(&home), json!([]), "one that serves all serves this one too");
}

#[test]
fn recently_dead_jobs_are_a_problem() {
    let home = Home::new();
    home.dead_job("a", "exit code 1");
    home.dead_job("b", "exit code 1");
    let line = "dlq_growing: 2 jobs died in the last hour; `queuectl dlq list --group` shows the causes";
    assert_eq!(messages(&home), [line]);
    let database = Connection::open(home.database()).expect("the database opens");
    database
        .execute("update jobs set finished_at = finished_at - 3600000 where id = 'a'", [])
        .expect("the statement is right");
    assert!(messages(&home)[0].starts_with("dlq_growing: 1 job died"));
    home.run(["dlq", "purge", "b"]).ok();
    assert_eq!(problems(&home), json!([]));
}

#[test]
fn a_failure_that_run_has_reported_is_no_problem() {
    let home = WorkingHome::new();
    let ran = home.run(["run", "-q", "--id", "seen", "--", "false"]);
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert_eq!(problems(&home), json!([]));
    assert_eq!(home.state_of("seen"), "dead", "it can still be examined and retried");
    home.run(["enqueue", "-q", "--id", "unseen", "--max-retries", "0", "--", "false"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert!(messages(&home)[0].starts_with("dlq_growing: 1 job died"));
    home.run(["retry", "-q", "seen"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert!(messages(&home)[0].starts_with("dlq_growing: 2 jobs died"), "its second death was not reported");
}

#[test]
fn a_schedule_that_missed_its_time_is_a_problem_for_a_day() {
    let home = Home::with_queue();
    home.run(["status"]).ok();
    let now = home.store().now().expect("the time").as_millis();
    let database = Connection::open(home.database()).expect("the database opens");
    let (hour, day) = (3_600_000, 86_400_000);
    for (name, missed_at, last_at, next_at) in [
        ("nightly", Some(now - hour), Some(now - hour), Some(now + hour)),
        ("never-run", Some(now - hour), None, None),
        ("on-time-since", Some(now - hour), Some(now - 1), Some(now + hour)),
        ("long-ago", Some(now - 2 * day), None, None),
        ("well", None, Some(now - hour), Some(now - 1_000)),
        ("overdue", None, None, Some(now - hour)),
    ] {
        database
            .execute(
                "insert into schedules (name, kind, expression, job, on_missed, on_overlap, created_at, missed_at,
                                        last_at, next_at)
                 values (?1, 'every', '1h', '{}', 'once', 'skip', 0, ?2, ?3, ?4)",
                params![name, missed_at, last_at, next_at],
            )
            .expect("the statement is right");
    }
    let messages = messages(&home);
    assert!(messages[0].starts_with("schedule_no_worker: 4 schedules are active"), "{messages:?}");
    let messages = &messages[1..];
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[2].starts_with("schedule_missed: schedule overdue missed its run"), "{messages:?}");
    assert!(messages[0].starts_with("schedule_missed: schedule never-run missed its run at "));
    assert!(messages[1].ends_with("see `queuectl schedule show nightly`"), "{messages:?}");
}

#[test]
fn a_failing_hook_is_a_problem() {
    let home = Home::new();
    home.run(["hook", "add", "h", "--on", "success", "--command", "echo no luck >&2; exit 1"]).ok();
    assert_eq!(problems(&home), json!([]), "nothing has happened yet");
    home.completed_job("a");
    let waits = "hook_waiting: 1 event waits for hook h, but no worker is running; \
                 start one with `queuectl worker start`";
    assert_eq!(messages(&home), [waits]);
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let failing = messages(&home).remove(0);
    assert!(failing.starts_with("hook_failing: hook h has been failing for "), "{failing}");
    assert!(
        failing.contains("(exit code 1: no luck), 1 event waits; try it with `queuectl hook test h`"),
        "{failing}"
    );
    let now = home.store().now().expect("the time").as_millis();
    let database = Connection::open(home.database()).expect("the database opens");
    let given_up = "update hooks set gave_up = 3, gave_up_at = ?1, failing_since = null";
    database.execute(given_up, [now]).expect("the statement is right");
    assert!(messages(&home).iter().any(|line| {
        line.starts_with("hook_gave_up: delivery of 3 events to hook h was given up (exit code 1: no luck)")
    }));
    home.run(["hook", "remove", "h"]).ok();
    assert_eq!(problems(&home), json!([]));
}

#[test]
fn problems_are_listed_below_the_tables() {
    let home = Home::new();
    home.dead_job("a", "exit code 1");
    home.run(["enqueue", "-q", "--", "true"]).ok();
    home.run(["config", "set", "durability", "normal"]).ok();
    let expected = "\
QUEUE    PENDING  PROCESSING  COMPLETED  FAILED  DEAD  CANCELLED
default        1           0          0       0     1          0

! 1 job waits, but no worker is running; start one with `queuectl worker start`
! 1 job died in the last hour; `queuectl dlq list --group` shows the causes
! durability is normal: a power failure can lose the most recent changes; restore full durability with `queuectl config unset durability`
";
    let shown = home.run(["status"]).ok().stdout;
    let (shown, hour) = shown.split_once("\nLast hour: ").expect("the last hour");
    assert_eq!(shown, expected);
    assert!(hour.starts_with("1 job finished (") && hour.contains("/min), 1 dead; "), "{hour}");
}

#[test]
fn workers_and_problems_are_separate_sections() {
    let home = Home::with_jobs(&["a"]);
    let _worker = TestWorker::new(&home, "w1");
    home.run(["queue", "pause", "mail"]).ok();
    let ran = home.run(["status"]).ok();
    let lines = ran.lines();
    let worker = lines.iter().position(|line| line.starts_with("w1 ")).expect("the worker is shown");
    assert_eq!(lines[worker + 1], "", "{ran}");
    assert!(lines[worker + 2].starts_with("! queue mail was paused by "), "{ran}");
    assert!(!lines[worker + 2].contains("jobs wait"), "{ran}");
}
