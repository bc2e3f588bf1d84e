//! The alert rules and the board in `contrib/`, judged by Prometheus' own tool with metrics of a real queue.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::REPOSITORY;
use crate::cli::harness::Home;

/// Whether `promtool` is here; if not, says so on standard error.
fn is_installed() -> bool {
    let found = Command::new("promtool").arg("--version").output().is_ok();
    if !found {
        // Bypasses the capture of output, which hides it for tests that pass.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: `promtool` is not installed, so it checks no metrics and rules"
        );
    }
    found
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(REPOSITORY).join("contrib").join(name)
}

fn promtool(args: &[&str], input: &str) -> Output {
    let mut tool = Command::new("promtool");
    tool.args(args).current_dir(file("prometheus"));
    tool.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tool.spawn().expect("promtool starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads its input");
    child.wait_with_output().expect("it ends")
}

fn assert_accepted(output: &Output) {
    let said = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
    assert!(output.status.success(), "{said}");
}

/// What a monitoring system reads from a queue in which every kind of metric has a sample.
fn scrape() -> String {
    let home = Home::with_jobs(&["waiting"]);
    home.run(["queue", "set", "-q", "mail", "--concurrency", "3"]).ok();
    home.run(["schedule", "add", "-q", "nightly", "--every", "1h", "--", "true"]).ok();
    home.run(["hook", "add", "-q", "notify", "--on", "dead", "-c", "true"]).ok();
    home.run(["metrics", "--format", "prometheus"]).ok().stdout
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| word.starts_with("queuectl_")).map(str::to_owned).collect()
}

fn assert_known(used: &BTreeSet<String>) {
    let known = names(&scrape());
    let unknown: Vec<&String> = used.difference(&known).collect();
    assert!(used.len() > 5 && unknown.is_empty(), "no such metrics: {unknown:?}");
}

#[test]
fn promtool_accepts_the_metrics_of_a_queue() {
    if is_installed() {
        assert_accepted(&promtool(&["check", "metrics"], &scrape()));
    }
}

#[test]
fn promtool_accepts_the_alert_rules_and_each_fires_when_it_should() {
    if is_installed() {
        assert_accepted(&promtool(&["check", "rules", "rules.yml"], ""));
        assert_accepted(&promtool(&["test", "rules", "rules.test.yml"], ""));
    }
}

#[test]
fn the_alert_rules_use_metrics_that_exist() {
    let rules = fs::read_to_string(file("prometheus/rules.yml")).expect("the rules");
    assert_known(&names(&rules));
}

#[test]
fn every_alert_has_a_test() {
    let read = |name| fs::read_to_string(file(name)).expect("a file");
    let (rules, tests) = (read("prometheus/rules.yml"), read("prometheus/rules.test.yml"));
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let mentions = tests.lines().filter(|line| line.contains(&format!("alertname: {alert}"))).count();
        assert_eq!(mentions, 2, "{alert} is tested with and without its problem");
    }
}

#[test]
fn the_board_uses_metrics_that_exist() {
    let board = fs::read_to_string(file("grafana/queuectl.json")).expect("the board");
    let board: serde_json::Value = serde_json::from_str(&board).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let expressions: Vec<&str> =
        targets.map(|target| target["expr"].as_str().expect("an expression")).collect();
    assert_known(&names(&expressions.join("\n")));
    let variable = &board["templating"]["list"][1]["definition"];
    assert_eq!(variable, "label_values(queuectl_jobs, queue)");
}
