//! `queuectl history`, and the last hour in `status`.

use serde_json::{Value, json};

use crate::cli::harness::Home;
use crate::cli::harness::background::Background;

#[test]
fn history_has_a_line_for_each_number_and_json_has_the_points() {
    let home = Home::new();
    home.completed_job("a");
    home.dead_job("b", "exit 1");
    let shown = home.run(["history", "--range", "1h"]).ok();
    let line = |name: &str| {
        let found = shown.lines().into_iter().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no line for {name}: {}", shown.stdout)).to_owned()
    };
    for (name, total) in
        [("enqueued", "2"), ("started", "2"), ("completed", "1"), ("failed", "1"), ("died", "1")]
    {
        let words: Vec<String> = line(name).split_whitespace().map(str::to_owned).collect();
        assert!(words.contains(&total.to_owned()), "{name}: {words:?}");
    }
    assert!(line("run p95").contains('█'));
    let json = home.run(["history", "--json"]).ok().json();
    assert_eq!(json["step_ms"], 300_000);
    let points = json["points"].as_array().expect("points");
    let sum = |field: &str| points.iter().filter_map(|point| point[field].as_u64()).sum::<u64>();
    assert_eq!(
        (sum("enqueued"), sum("started"), sum("success"), sum("failed"), sum("died")),
        (2, 2, 1, 1, 1)
    );
    home.run(["history", "--queue", "defualt"]).fails(3).says("did you mean `default`?");
    home.run(["history", "--range", "x"]).fails(2);
}

#[test]
fn status_has_the_last_hour_once_an_attempt_started() {
    let home = Home::new();
    home.run(["enqueue", "-q", "--delay", "1h", "--", "true"]).ok();
    assert!(!home.run(["status"]).ok().stdout.contains("Last hour"));
    home.completed_job("a");
    home.dead_job("b", "exit code 1");
    let shown = home.run(["status"]).ok().stdout;
    assert!(
        shown.contains("Last hour: 2 jobs finished (") && shown.contains("/min), 1 dead; waited p50 "),
        "{shown}"
    );
    let hour = &home.run(["status", "--json"]).ok().json()["last_hour"];
    assert_eq!((&hour["started"], &hour["finished"], &hour["died"]), (&json!(2), &json!(2), &json!(1)));
    assert!(hour["wait_p95_ms"].is_u64() && hour["run_p50_ms"].is_u64(), "{hour}");
    assert!(hour["finished_per_minute"].as_f64() > Some(0.0), "{hour}");
    let watching = Background::start(home.call(["status", "--watch", "--json"]));
    let update: Value = serde_json::from_str(&watching.prints()).expect("JSON");
    assert_eq!(update["last_hour"]["finished"], 2);
}
