//! `upcoming`

use domain::job::outcome::Outcome;
use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::test_worker::TestWorker;

#[test]
fn retries_delayed_jobs_and_schedules_are_listed_in_the_order_of_time() {
    let home = Home::with_queue();
    home.run(["upcoming", "--json"]).ok().prints("[]\n").says_nothing();
    home.run(["upcoming"]).ok().prints("").says("nothing is planned");
    home.run(["config", "set", "-q", "retry-delay", "30m"]).ok();
    home.run(["config", "set", "-q", "max-backoff", "30m"]).ok();
    home.run(["enqueue", "-q", "--id", "failing", "--", "false"]).ok();
    let worker = TestWorker::new(&home, "w1");
    worker.settle(worker.claim_job("failing"), Outcome::Failure { exit_code: 1 }, Some("exit code 1"));
    home.run(["enqueue", "-q", "--id", "later", "--delay", "3h", "--queue", "mail", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "sooner", "--name", "soon", "--delay", "20m", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "ready", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "blocked", "--depends-on", "later", "--", "true"]).ok();
    home.run(["schedule", "add", "-q", "hourly", "--every", "1h", "--queue", "mail", "--", "echo", "a b"])
        .ok();
    home.run(["schedule", "add", "-q", "held", "--every", "1h", "--", "true"]).ok();
    home.run(["schedule", "pause", "-q", "held"]).ok();

    let mut coming = home.run(["upcoming", "--json"]).ok().says_nothing().json();
    let times: Vec<Value> =
        coming.as_array_mut().expect("an array").iter_mut().map(|one| one["at"].take()).collect();
    assert!(times.iter().map(Value::to_string).is_sorted(), "{times:?}");
    let one = |kind, number: Option<u64>, id: Option<&str>, schedule: Option<&str>, queue, command| {
        let name = (id == Some("sooner")).then_some("soon");
        json!({"at": null, "kind": kind, "number": number, "id": id, "name": name, "schedule": schedule,
               "queue": queue, "command": command})
    };
    assert_eq!(
        coming,
        json!([
            one("start", Some(3), Some("sooner"), None, "default", "true"),
            one("retry", Some(1), Some("failing"), None, "default", "false"),
            one("schedule", None, None, Some("hourly"), "mail", "echo 'a b'"),
            one("start", Some(2), Some("later"), None, "mail", "true"),
        ])
    );
    let first = home.run(["upcoming", "-n", "2"]).ok().says("there are more; use a larger --limit");
    assert_eq!(first.lines().len(), 3, "{first}");
    let heading: Vec<&str> = first.lines()[0].split_whitespace().collect();
    assert_eq!(heading, ["WHEN", "IN", "WHAT", "#", "JOB"]);
    // Rounded, so the test may take half a minute to get here.
    assert!(first.lines()[1].ends_with("  20m  start  3  soon"), "{first}");
    home.run(["upcoming"]).ok().shows("  schedule  -  hourly: echo 'a b'\n").shows("  start     2  true\n");
    home.run(["upcoming", "--limit", "0"]).ok().says("there are more");
    home.run(["upcoming", "--limit", "-1"]).fails(2).prints("");
}
