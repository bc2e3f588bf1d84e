//! What a monitoring system reads.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use super::client::Server;
use super::rich;
use crate::cli::harness::Home;

#[test]
fn a_scrape_has_the_numbers_of_the_store_and_of_the_server() {
    let server = Server::start(Home::with_jobs(&["a", "b"]), &[]);
    let scraper = server.token("metrics");
    server.request("GET", "/api/v1/jobs").bearer(&scraper).send().expects(403);
    server.call("GET", "/nope").send().expects(404);
    let answer = server.request("GET", "/metrics").bearer(&scraper).send().expects(200);
    assert_eq!(answer.header("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        "queuectl_up 1",
        "queuectl_jobs{queue=\"default\",state=\"pending\"} 2",
        "queuectl_http_requests_total{route=\"GET /api/v1/jobs\",status=\"403\"} 1",
        "queuectl_http_requests_total{route=\"none\",status=\"404\"} 1",
        "queuectl_http_request_duration_seconds_count{route=\"GET /api/v1/jobs\"} 1",
        "queuectl_http_streams 0",
    ] {
        assert!(answer.body.lines().any(|known| known == line), "{line}:\n{}", answer.body);
    }
    for name in [
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
        "process_open_fds",
    ] {
        assert!(answer.body.contains(&format!("\n{name} ")), "{name}");
    }
    if let Ok(mut promtool) = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    {
        promtool.stdin.take().expect("stdin").write_all(answer.body.as_bytes()).expect("written");
        let said = promtool.wait_with_output().expect("promtool ends");
        assert!(
            said.status.success(),
            "{}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
    }
}

#[test]
fn a_server_of_metrics_has_nothing_else() {
    let server = Server::of_metrics(Home::with_jobs(&["a"]), &[]);
    let answer = server.call("GET", "/metrics").send().expects(200);
    assert!(answer.body.contains("queuectl_jobs{queue=\"default\",state=\"pending\"} 1"), "{}", answer.body);
    server.request("GET", "/metrics").send().expects(401);
    server.call("GET", "/metrics").with("Host", "example.org").send().expects(421);
    let admin = server.token("admin");
    for (method, path) in [("GET", "/"), ("GET", "/api/v1/jobs"), ("POST", "/api/v1/jobs"), ("GET", "/login")]
    {
        let answer = server.request(method, path).bearer(&admin).send().expects(404);
        assert!(answer.body.contains("at `/metrics` alone"), "{}", answer.body);
    }
    assert!(server.link.is_empty());
    server.home.run(["dashboard", "link"]).fails(3).says("no dashboard is running in this home");
}

#[test]
fn a_server_of_metrics_keeps_the_rules_of_the_dashboard() {
    let home = Home::with_queue();
    home.run(["metrics", "--listen", "0.0.0.0:0"]).fails(2).says("can be reached from other machines");
    home.run(["metrics", "--allow-remote"]).fails(2).says("a server needs --listen");
    home.run(["metrics", "--listen", "127.0.0.1:0", "--format", "json"]).fails(2);
}

/// The samples of the families that are no gauges, by name and labels.
fn counters(text: &str) -> BTreeMap<String, f64> {
    let (mut found, mut is_counted) = (BTreeMap::new(), false);
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            // Those of the server begin anew with it.
            is_counted = family.starts_with("queuectl_")
                && !family.starts_with("queuectl_http_")
                && (family.ends_with(" counter") || family.ends_with(" histogram"));
        } else if let Some((sample, value)) =
            line.rsplit_once(' ').filter(|_| is_counted && !line.starts_with('#'))
        {
            found.insert(sample.to_owned(), value.parse().expect("a number"));
        }
    }
    found
}

fn scrape(server: &Server) -> String {
    server.call("GET", "/metrics").send().expects(200).body
}

#[test]
fn counters_only_grow_whatever_becomes_of_the_jobs_and_of_the_server() {
    let home = rich::home();
    let server = Server::start(home, &[]);
    let first = counters(&scrape(&server));
    assert!(first.len() > 50 && first.values().any(|value| *value > 0.0), "{first:?}");
    let at_least = |now: &BTreeMap<String, f64>, before: &BTreeMap<String, f64>, what: &str| {
        for (sample, value) in before {
            let now = now.get(sample).unwrap_or_else(|| panic!("{what}: {sample} is gone"));
            assert!(now >= value, "{what}: {sample} fell from {value} to {now}");
        }
    };
    server.home.run(["enqueue", "-q", "--id", "more", "--max-retries", "0", "--", "false"]).ok();
    server.home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let second = counters(&scrape(&server));
    at_least(&second, &first, "more jobs");
    assert!(second != first);
    // Two weeks pass, so that minutes become hours.
    let database = rusqlite::Connection::open(server.home.database()).expect("opened");
    let moved = database.execute("update minutes set id = id - (20160 << 31) where id >> 61 = 0", []);
    assert!(moved.expect("they are moved") > 0);
    // No minute that a process has read ever gets another time, except by this test.
    let server = server.restarted();
    assert_eq!(counters(&scrape(&server)), second, "two weeks later");
    let hours = || -> i64 {
        let count = "select count(*) from minutes where id >> 61 = 2";
        database.query_row(count, [], |row| row.get(0)).expect("a number")
    };
    assert_eq!(hours(), 0);
    for (key, value) in [("retain_completed", "0s"), ("retain_dead", "0s"), ("retain_events", "0s")] {
        server.home.run(["config", "set", key, value]).ok();
    }
    server.home.run(["prune", "-q"]).ok();
    assert!(hours() > 0, "they were folded");
    assert_eq!(counters(&scrape(&server)), second, "after the fold");
    let restarted = server.restarted();
    assert_eq!(counters(&scrape(&restarted)), second, "after a restart");
}

#[test]
fn three_hundred_queues_are_two_hundred_and_the_rest() {
    let home = Home::new();
    let line = |at| format!("{{\"command\":\"true\",\"queue\":\"q{at:03}\"}}\n");
    home.call(["enqueue", "-q", "-"]).with_stdin((0..300).map(line).collect::<String>()).run().ok();
    let server = Server::start(home, &[]);
    let text = scrape(&server);
    let pending = text.lines().filter_map(|line| line.strip_prefix("queuectl_jobs{queue=\""));
    let pending: BTreeMap<&str, &str> =
        pending.filter_map(|rest| rest.split_once("\",state=\"pending\"} ")).collect();
    assert_eq!((pending.len(), pending.get("_other")), (201, Some(&"100")), "{pending:?}");
    let enqueued = counters(&text);
    let enqueued = enqueued.iter().filter(|(sample, _)| sample.starts_with("queuectl_jobs_enqueued_total"));
    assert!((enqueued.map(|(_, value)| value).sum::<f64>() - 300.0).abs() < 1e-9);
    assert!(text.len() < 2 << 20, "{}", text.len());
}
