//! `metrics`

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use domain::job::outcome::Outcome;
use serde_json::json;

use crate::cli::harness::Home;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::test_worker::TestWorker;

/// Two queues: one in which all succeeds, one with a retry and a dead job.
fn worked() -> Home {
    let home = Home::new();
    home.completed_job("good");
    home.failed_job("again");
    home.dead_job("bad", "exit code 1: boom");
    home.run(["enqueue", "-q", "--id", "late", "--queue", "mail", "--", "true"]).ok();
    home
}

/// A family of samples, as a scraper reads it.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// By name and labels.
    samples: BTreeMap<String, f64>,
}

/// Reads the text as strictly as a scraper does: metadata first, no family twice, known types, numbers, histograms whose
/// buckets grow.
fn parse(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (family, words) = help.split_once(' ').expect("a name and words");
            assert!(!words.is_empty() && !families.contains_key(family), "{line}");
            family.clone_into(&mut name);
            families.insert(name.clone(), Family::default());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (family, kind) = kind.split_once(' ').expect("a name and a type");
            assert_eq!(family, name, "the type follows the help");
            assert!(["gauge", "counter", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            kind.clone_into(&mut families.get_mut(&name).expect("a family").kind);
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample and its value");
            let base = sample.split('{').next().expect("a name");
            let suffixes = ["", "_bucket", "_sum", "_count"];
            assert!(suffixes.iter().any(|suffix| base == format!("{name}{suffix}")), "{line} in {name}");
            let value = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
            let family = families.get_mut(&name).expect("a family");
            assert!(family.samples.insert(sample.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
        check_buckets(text, name, family);
    }
    families
}

fn check_buckets(text: &str, name: &str, family: &Family) {
    let mut before: Option<(&str, f64)> = None;
    let mut queues = 0;
    for line in text.lines().filter(|line| line.starts_with(&format!("{name}_bucket{{"))) {
        let (labels, rest) = line.split_once(",le=\"").expect("a bound after the queue");
        let (bound, count) = rest.split_once("\"} ").expect("a bound and a count");
        let count: f64 = count.parse().expect("a number");
        if let Some((known, least)) = before.filter(|(known, _)| *known == labels) {
            assert!(count >= least, "the buckets of {known} grow");
        }
        before = Some((labels, count));
        if bound == "+Inf" {
            let queue = labels.split_once("_bucket").expect("a bucket").1;
            assert!((family.samples[&format!("{name}_count{queue}}}")] - count).abs() < 1e-9, "{line}");
            assert!(family.samples.contains_key(&format!("{name}_sum{queue}}}")), "{line}");
            queues += 1;
        }
    }
    assert!(queues > 0, "{name} has no last bucket");
}

fn scrape(home: &Home) -> BTreeMap<String, Family> {
    parse(&home.run(["metrics"]).ok().says_nothing().stdout)
}

/// The value of a sample.
fn value(families: &BTreeMap<String, Family>, sample: &str) -> f64 {
    let found = families.values().find_map(|family| family.samples.get(sample));
    *found.unwrap_or_else(|| panic!("no {sample} in {families:#?}"))
}

#[test]
fn a_pipe_gets_the_text_format_of_prometheus() {
    let home = worked();
    home.run(["schedule", "add", "-q", "nightly", "--every", "1h", "--", "true"]).ok();
    home.run(["hook", "add", "-q", "site", "--on", "dead", "-c", "true"]).ok();
    home.run(["queue", "set", "-q", "mail", "--concurrency", "3"]).ok();
    let families = scrape(&home);
    for (sample, expected) in [
        ("queuectl_up", 1.0),
        ("queuectl_jobs{queue=\"default\",state=\"completed\"}", 1.0),
        ("queuectl_jobs{queue=\"mail\",state=\"pending\"}", 1.0),
        ("queuectl_jobs{queue=\"mail\",state=\"processing\"}", 0.0),
        ("queuectl_queue_paused{queue=\"mail\"}", 0.0),
        ("queuectl_queue_concurrency_limit{queue=\"mail\"}", 3.0),
        ("queuectl_jobs_enqueued_total{queue=\"default\"}", 3.0),
        ("queuectl_attempts_started_total{queue=\"default\"}", 3.0),
        ("queuectl_retries_scheduled_total{queue=\"default\"}", 1.0),
        ("queuectl_jobs_finished_total{queue=\"default\",state=\"completed\"}", 1.0),
        ("queuectl_jobs_finished_total{queue=\"default\",state=\"dead\"}", 1.0),
        ("queuectl_jobs_finished_total{queue=\"default\",state=\"cancelled\"}", 0.0),
        ("queuectl_attempts_total{queue=\"default\",outcome=\"success\"}", 1.0),
        ("queuectl_attempts_total{queue=\"default\",outcome=\"failure\"}", 2.0),
        ("queuectl_attempts_total{queue=\"default\",outcome=\"spawn_error\"}", 0.0),
        ("queuectl_attempt_duration_seconds_count{queue=\"default\"}", 3.0),
        ("queuectl_queue_latency_seconds_count{queue=\"default\"}", 3.0),
        ("queuectl_queue_latency_seconds_count{queue=\"mail\"}", 0.0),
        ("queuectl_hook_failing{hook=\"site\"}", 0.0),
        ("queuectl_problem{problem=\"dlq_growing\"}", 1.0),
        ("queuectl_problem{problem=\"low_space\"}", 0.0),
    ] {
        assert!((value(&families, sample) - expected).abs() < 1e-9, "{sample}");
    }
    assert!(value(&families, "queuectl_queue_oldest_ready_seconds{queue=\"mail\"}") > 0.0);
    assert!(value(&families, "queuectl_schedule_next_timestamp_seconds{schedule=\"nightly\"}") > 1e9);
    assert!(value(&families, "queuectl_store_bytes{file=\"db\"}") > 0.0);
    let names: BTreeSet<&str> = families.keys().map(String::as_str).collect();
    for name in
        ["queuectl_build_info", "queuectl_workers", "queuectl_worker_slots", "queuectl_disk_free_bytes"]
    {
        assert!(names.contains(name), "{name} is missing in {names:?}");
    }
    let bounds = |name: &str| {
        let samples = families[name].samples.keys().filter(|sample| sample.contains("queue=\"mail\",le="));
        samples.count()
    };
    assert_eq!(bounds("queuectl_attempt_duration_seconds"), 16);
    assert_eq!(bounds("queuectl_queue_latency_seconds"), 16);
}

#[test]
fn counters_survive_the_removal_of_jobs() {
    let home = worked();
    let before = scrape(&home);
    home.run(["remove", "-q", "--yes", "good", "bad", "again"]).ok();
    home.run(["prune", "-q"]).ok();
    let after = scrape(&home);
    for (name, family) in before.iter().filter(|(_, family)| family.kind != "gauge") {
        assert_eq!(after[name].samples, family.samples, "{name}");
    }
}

#[test]
fn one_queue_can_be_chosen_and_must_exist() {
    let home = worked();
    let mail = home.run(["metrics", "-Q", "mail"]).ok();
    assert!(mail.stdout.contains("queue=\"mail\"") && !mail.stdout.contains("queue=\"default\""), "{mail}");
    home.run(["metrics", "--queue", "mial"]).fails(3).says("mail");
    home.run(["metrics", "--queue", "a b"]).fails(2);
    home.run(["metrics", "--format", "xml"]).fails(2).says("prometheus");
    home.run(["metrics", "--format", "text", "--json"]).fails(2).says("--json cannot be combined");
}

#[test]
fn json_has_the_last_hour_and_the_totals() {
    let home = worked();
    let metrics = home.run(["metrics", "--json"]).ok().says_nothing().json();
    assert_eq!(metrics, home_json(&home, &metrics), "--format json is the same");
    let default = &metrics["queues"][0];
    for (field, expected) in [
        ("queue", json!("default")),
        ("enqueued", json!(3)),
        ("started", json!(3)),
        ("finished", json!(2)),
        ("retries", json!(1)),
        ("died", json!(1)),
        ("oldest_waiting_ms", json!(null)),
    ] {
        assert_eq!(default[field], expected, "{field}");
    }
    assert_eq!(default["outcomes"]["failure"], 2);
    let rate = default["success_rate"].as_f64().expect("a rate");
    assert!((rate - 1.0 / 3.0).abs() < 1e-9, "{rate}");
    assert!(default["wait_p95_ms"].is_u64() && default["run_p50_ms"].is_u64(), "{default}");
    let total = json!({"enqueued": 3, "started": 3, "retries": 1,
                       "finished": {"completed": 1, "dead": 1, "cancelled": 0},
                       "outcomes": default["outcomes"], "cpu_ms": default["total"]["cpu_ms"]});
    assert_eq!(default["total"], total);
    let mail = &metrics["queues"][1];
    assert_eq!(
        (&mail["enqueued"], &mail["started"], &mail["run_p50_ms"]),
        (&json!(1), &json!(0), &json!(null))
    );
    assert!(mail["oldest_waiting_ms"].is_u64(), "{mail}");
    assert_eq!((&metrics["all"]["enqueued"], &metrics["all"]["died"]), (&json!(4), &json!(1)));
    assert!(metrics["since"].as_str() < metrics["until"].as_str());
}

/// What `--format json` prints, with the times of an earlier answer.
fn home_json(home: &Home, earlier: &serde_json::Value) -> serde_json::Value {
    let mut now = home.run(["metrics", "--format", "json"]).ok().json();
    for field in ["since", "until"] {
        now[field] = earlier[field].clone();
    }
    now["all"]["oldest_waiting_ms"] = earlier["all"]["oldest_waiting_ms"].clone();
    now["queues"][1]["oldest_waiting_ms"] = earlier["queues"][1]["oldest_waiting_ms"].clone();
    now
}

#[test]
fn a_file_is_replaced_as_a_whole_and_nothing_is_printed() {
    let home = worked();
    let file = home.folder().join("queuectl.prom");
    for _ in 0..2 {
        home.run(["metrics".as_ref(), "--output".as_ref(), file.as_os_str()]).ok().prints("").says_nothing();
        assert!(parse(&fs::read_to_string(&file).expect("the file")).contains_key("queuectl_jobs"));
    }
    home.run(["metrics".as_ref(), "--format".as_ref(), "text".as_ref(), "-o".as_ref(), file.as_os_str()])
        .ok();
    let text = fs::read_to_string(&file).expect("the file");
    assert!(text.starts_with("2 queues in the last hour") && !text.contains('\u{1b}'), "{text}");
    let missing = home.folder().join("missing").join("x.prom");
    home.run(["metrics".as_ref(), "--output".as_ref(), missing.as_os_str()]).fails(5).says("x.prom");
    home.run(["metrics", "--output", "-"]).ok().shows("queuectl_up 1");
    home.run(["-q", "metrics"]).ok().prints("");
}

#[test]
fn a_terminal_gets_a_summary_that_fits() {
    let home = worked();
    let screen = |columns| {
        let call = home.call(["--color", "never", "metrics"]);
        let seen = on_terminal(call.into_command(), columns, "");
        assert_eq!(seen.code, Some(0), "{}", seen.screen);
        seen.screen.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<String>>()
    };
    for (columns, heading) in [
        (
            80,
            &[
                "QUEUE", "ENQUEUED", "FINISHED", "SUCCESS", "RETRIES", "DEAD", "WAIT", "P95", "RUN", "P95",
                "OLDEST",
            ][..],
        ),
        (
            120,
            &[
                "QUEUE", "ENQUEUED", "STARTED", "FINISHED", "SUCCESS", "RETRIES", "DEAD", "WAIT", "P50",
                "WAIT", "P95", "RUN", "P50", "RUN", "P95", "OLDEST",
            ],
        ),
    ] {
        let lines = screen(columns);
        assert!(lines[0].starts_with("2 queues in the last hour (since "), "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("success") && line.contains("33.3%")), "{lines:#?}");
        let row = lines.iter().position(|line| line.starts_with("QUEUE")).expect("a table");
        assert_eq!(lines[row].split_whitespace().collect::<Vec<_>>(), heading, "{columns}");
        assert!(lines[row + 1].starts_with("default ") && lines[row + 2].starts_with("mail "), "{lines:#?}");
    }
    home.run(["metrics", "--format", "text", "--queue", "mail"])
        .ok()
        .shows("Queue mail in the last hour")
        .shows_no("QUEUE");
}

#[test]
fn an_empty_queue_has_metrics_too() {
    let home = Home::with_queue();
    home.run(["metrics"]).ok().shows("queuectl_up 1\n");
    home.run(["metrics", "--format", "text"]).ok().prints("").says("hint: no queues yet");
    let json = home.run(["metrics", "--json"]).ok().json();
    assert_eq!((&json["queues"], &json["all"]["success_rate"]), (&json!([]), &json!(null)));
    home.run(["queue", "set", "-q", "mail", "--concurrency", "1"]).ok();
    let idle = home.run(["metrics", "--format", "text"]).ok().shows("no job is waiting");
    assert!(idle.stdout.lines().all(|line| line.trim_end() == line), "{idle}");
    let nowhere = Home::new();
    nowhere.run(["metrics"]).fails(3).says("no queue");
}

#[test]
fn a_repaired_counter_keeps_how_many_jobs_entered_its_state() {
    let home = worked();
    let before = scrape(&home);
    let database = rusqlite::Connection::open(home.database()).expect("the database opens");
    database.execute("update counters set count = count + 3", []).expect("it is damaged");
    drop(database);
    home.run(["doctor", "--repair", "--yes", "-q"]).ok();
    let after = scrape(&home);
    for name in ["queuectl_jobs", "queuectl_jobs_enqueued_total", "queuectl_jobs_finished_total"] {
        assert_eq!(after[name].samples, before[name].samples, "{name}");
    }
}

#[test]
fn a_lost_attempt_counts_without_a_run_time() {
    let home = Home::with_jobs(&["a"]);
    let worker = TestWorker::new(&home, "w1");
    worker.claim_job("a");
    worker.die();
    let worker = TestWorker::new(&home, "w2");
    worker.settle(worker.claim_job("a"), Outcome::Success, None);
    let families = scrape(&home);
    for (sample, expected) in [
        ("queuectl_attempts_total{queue=\"default\",outcome=\"lost\"}", 1.0),
        ("queuectl_attempts_started_total{queue=\"default\"}", 2.0),
        ("queuectl_attempt_duration_seconds_count{queue=\"default\"}", 1.0),
    ] {
        assert!((value(&families, sample) - expected).abs() < 1e-9, "{sample}");
    }
}
