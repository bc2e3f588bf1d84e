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
