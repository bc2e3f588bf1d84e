//! What a monitoring system reads.

use std::io::Write;
use std::process::{Command, Stdio};

use super::client::Server;
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
