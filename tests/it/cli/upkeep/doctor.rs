//! `doctor`: each test provokes a finding, and checking changes nothing.

mod database;
mod home;
mod machine;
mod queue;
mod recount;
mod workers;
mod writers;

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};
use store::sqlite::SCHEMA_VERSION;

use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::{Home, RunResult};
use crate::folder_snapshot::snapshot;

/// The report of `doctor --json`; it must change nothing in a home that no other process uses.
struct Diagnosis {
    ran: RunResult,
}

impl Diagnosis {
    #[track_caller]
    fn of(home: &Home) -> Self {
        let before = snapshot(home.folder());
        let diagnosis = Self { ran: home.run(["doctor", "--json"]) };
        assert!(snapshot(home.folder()) == before, "something was changed: {}", diagnosis.ran);
        diagnosis
    }

    /// As `of`, for a home that other processes use.
    fn of_busy(home: &Home) -> Self {
        Self { ran: home.run(["doctor", "--json"]) }
    }

    #[track_caller]
    fn code(self, code: i32) -> Self {
        assert_eq!(self.ran.status.code(), Some(code), "{}", self.ran);
        assert_eq!(self.ran.json()["ok"], code == 0, "{}", self.ran);
        assert!(code == 0 || self.ran.error_json()["exit_code"] == code, "{}", self.ran);
        self
    }

    /// Asserts a finding of this check and level whose message contains this.
    #[track_caller]
    fn finds(self, check: &str, level: &str, part: &str) -> Self {
        let findings = self.findings();
        let is_it = |finding: &&Value| {
            finding["check"] == check
                && finding["level"] == level
                && finding["said"].as_str().expect("text").contains(part)
        };
        assert!(findings.iter().any(|finding| is_it(&finding)), "no {level} {check} {part}: {}", self.ran);
        self
    }

    /// Asserts that some finding has this advice.
    #[track_caller]
    fn advises(self, part: &str) -> Self {
        let advises = |finding: &Value| finding["advice"].as_str().is_some_and(|text| text.contains(part));
        assert!(self.findings().iter().any(advises), "no finding advises `{part}`: {}", self.ran);
        self
    }

    #[track_caller]
    fn finds_no(self, check: &str) -> Self {
        assert!(!self.findings().iter().any(|finding| finding["check"] == check), "{check}: {}", self.ran);
        self
    }

    fn findings(&self) -> Vec<Value> {
        self.ran.json()["findings"].as_array().expect("a list").clone()
    }
}

/// Changes the database without queuectl, and checkpoints it.
fn tamper(home: &Home, sql: &str) {
    let connection = Connection::open(home.database()).expect("the database opens");
    connection.execute_batch(sql).expect(sql);
    connection.execute_batch("pragma wal_checkpoint(truncate)").expect("all is in the file");
}

#[test]
fn a_healthy_queue_has_no_errors() {
    let home = Home::new();
    home.completed_job("a");
    let diagnosis = Diagnosis::of(&home).code(0).finds("home", "ok", "accessible only to its owner");
    let checks: Vec<String> = diagnosis
        .findings()
        .iter()
        .map(|finding| finding["check"].as_str().expect("text").to_owned())
        .collect();
    for check in [
        "home",
        "files",
        "filesystem",
        "space",
        "sqlite",
        "database",
        "schema",
        "wal",
        "gate",
        "workers",
        "settings",
        "clock",
        "user",
        "proc",
        "containment",
        "open_files",
        "processes",
        "file_size",
    ] {
        assert_eq!(checks.iter().filter(|found| *found == check).count(), 1, "{check} in {checks:?}");
    }
    home.run(["doctor", "--full"])
        .ok()
        .says_nothing()
        .shows("intact, including its indexes")
        .shows("No errors, ");
}

#[test]
fn a_finding_has_the_documented_shape() {
    let home = Home::with_jobs(&["a"]);
    let findings = Diagnosis::of(&home).findings();
    assert_eq!(
        findings.iter().find(|finding| finding["check"] == "schema"),
        Some(
            &json!({"check": "schema", "level": "ok", "said": format!("version {SCHEMA_VERSION}"), "advice": null})
        ),
    );
    for finding in findings {
        let keys: Vec<&String> = finding.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["advice", "check", "level", "said"]);
        assert!(["ok", "warning", "error"].contains(&finding["level"].as_str().expect("text")), "{finding}");
        assert!(
            finding["advice"].is_null() || finding["level"] != "ok",
            "good news need no advice: {finding}"
        );
    }
}

#[test]
fn quiet_keeps_the_exit_code_and_the_errors() {
    let home = Home::with_jobs(&["a"]);
    home.run(["doctor", "-q"]).ok().prints("").says_nothing();
    let other = Home::new();
    other.file("home", "precious");
    let message = "error: 1 error was found (home: `";
    other.run(["doctor", "-q"]).fails(7).prints("").says(message).says("is a file, but the home must be");
    other.run(["doctor"]).fails(7).shows("error    home").says("error: 1 error was found (home)\n");
}

#[test]
fn a_terminal_shows_colours_and_wrapped_lines() {
    let home = Home::with_jobs(&["a"]);
    crate::cli::harness::allow(&home.path(), 0o755);
    let seen = on_terminal(home.call(["doctor"]).into_command(), 60, "");
    assert_eq!(seen.code, Some(0), "{}", seen.screen);
    assert!(seen.screen.contains("\u{1b}[33mwarning\u{1b}[0m  home  "), "{}", seen.screen);
    let plain = anstream::adapter::strip_str(&seen.screen).to_string();
    assert!(plain.contains("\n                      hint: run"), "advice is indented: {plain}");
    assert!(plain.contains(" `chmod 700 /"), "{plain}");
    let temporary = home.path().display().to_string();
    for line in plain.lines().filter(|line| !line.contains(&temporary)) {
        assert!(line.chars().count() <= 60, "{line}");
    }
    assert!(plain.contains("\n\nNo errors, "), "{plain}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let home = Home::new();
    let evil = home.folder().join("evil\u{1b}[31m");
    let call = home.call_without_home([Path::new("--home"), &evil, Path::new("doctor")]);
    let seen = on_terminal(call.env("NO_COLOR", "1").into_command(), 200, "");
    assert!(seen.screen.contains("evil\\u{1b}[31m does not exist yet"), "{}", seen.screen);
    assert!(!seen.screen.contains('\u{1b}'), "{}", seen.screen);
}
