//! The plans of hot statements, as the server has run them: it writes each with the rows that it touched to its log.

use std::fs;
use std::sync::Arc;

use domain::job::outcome::Outcome;
use serde_json::Value;
use store::postgres::Address;

use super::hot::{run_hot_verbs, settle};
use crate::engine::harness::wait_until;
use crate::postgres::cluster::Cluster;
use crate::store::fixture::new_job::job;
use crate::store::fixture::schema::Schema;
use crate::store::fixture::{Fixture, TestClock};

const JOBS: usize = 12_000;
const FINISHED: usize = 4_000;
const WAITING: usize = 500;
/// A statement touches at most so many rows of a large table. Turns and enqueues of the test have 40 jobs.
const MAX_ROWS: f64 = 200.0;
/// The tables that grow with the jobs.
const LARGE: [&str; 10] = [
    "jobs",
    "attempts",
    "ready",
    "waiting",
    "outputs",
    "job_tags",
    "dependencies",
    "unique_keys",
    "output_parts",
    "events",
];

#[test]
fn hot_statements_find_the_rows_of_large_tables_by_an_index() {
    let cluster = Cluster::start("fsync = off");
    let schema = Schema { address: Address::parse(&cluster.socket_url("keeper")).expect("an address") };
    let clock = Arc::new(TestClock::default());
    fill(&Fixture::postgres_in(&schema, clock.clone()));
    cluster.sql("jobs", "vacuum analyze");
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_format = json",
    ] {
        cluster.sql("postgres", &format!("alter role keeper set {setting}"));
    }
    {
        let fixture = Fixture::postgres_in(&schema, clock);
        run_hot_verbs(&fixture, &fixture.worker("measured"));
    }
    let left = "select 1 from pg_stat_activity where usename = 'keeper'";
    wait_until("the session has ended", || cluster.sql("postgres", left).is_empty());
    let plans = plans(&fs::read_to_string(cluster.path().join("log")).expect("the log"));
    for part in [
        "found f on true",
        "insert into jobs ",
        "update jobs",
        "delete from ready",
        "insert into attempts",
        "delete from jobs",
        "delete from workers",
    ] {
        assert!(plans.iter().any(|plan| text(plan).contains(part)), "no plan of a statement with {part:?}");
    }
    for plan in &plans {
        let mut problems = Vec::new();
        examine(&plan["Plan"], &mut problems);
        assert_eq!(problems, Vec::<String>::new(), "{}", text(plan));
    }
}

fn fill(fixture: &Fixture) {
    let queue = |at: usize| ["default", "a", "b"][at % 3];
    for start in (0..JOBS).step_by(2_000) {
        let jobs =
            (start..start + 2_000).map(|at| job(&format!("old-{at}")).queue(queue(at)).tags(&["t", "u"]));
        fixture.enqueue_all(jobs);
    }
    fixture.enqueue_all((0..WAITING).map(|at| job(&format!("late-{at}")).delay_secs(100_000)));
    let worker = fixture.worker("filler");
    let mut held = Vec::new();
    for _ in 0..FINISHED / 500 {
        held = fixture.exchange(&worker, &settle(&held, Outcome::Success), 500).claimed;
        assert_eq!(held.len(), 500);
    }
    fixture.exchange(&worker, &settle(&held, Outcome::Success), 0);
    fixture.retire(&worker);
}

/// The plans in a log: each follows its line, indented by a tab.
fn plans(log: &str) -> Vec<Value> {
    let mut plans = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.ends_with(" plan:") {
            continue;
        }
        let mut json = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            json.push_str(more);
        }
        plans.push(serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}")));
    }
    plans
}

fn text(plan: &Value) -> &str {
    plan["Query Text"].as_str().unwrap_or_default()
}

fn examine(node: &Value, problems: &mut Vec<String>) {
    let table = node["Relation Name"].as_str().unwrap_or_default();
    if LARGE.contains(&table) {
        let number = |name: &str| node[name].as_f64().unwrap_or(0.0);
        let of_each_loop = number("Actual Rows") + number("Rows Removed by Filter");
        let rows = of_each_loop * number("Actual Loops") + number("Rows Removed by Index Recheck");
        let kind = node["Node Type"].as_str().unwrap_or_default();
        if kind == "Seq Scan" || rows > MAX_ROWS {
            problems.push(format!("{kind} of {rows} rows of {table}"));
        }
    }
    for part in node["Plans"].as_array().into_iter().flatten() {
        examine(part, problems);
    }
}
