//! `queuectl export` and `queuectl import`

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rusqlite::Connection;
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::cli::harness::background::end_of;
use crate::cli::harness::pseudo_terminal::on_terminal;
use crate::cli::harness::working_home::{UNTIL_GO, WorkingHome, wait_until};
use crate::cli::harness::{Home, RunResult};
use crate::store::fixture::Fixture;

/// A command whose output is long enough for a log file.
const LONG_OUTPUT: &str = "sleep 0.6; seq 1 100000";

/// A home with jobs of many kinds.
fn full_home() -> Home {
    let home = Home::new();
    home.run(["config", "set", "retry_delay", "1h"]).ok();
    home.run(["config", "set", "max_backoff", "2h"]).ok();
    home.run(["run", "-q", "--id", "fails", "--max-retries", "0", "--", "sh", "-c", "echo no >&2; exit 3"]);
    home.run([
        "enqueue", "-q", "--id", "done", "--tags", "x", "--env", "A=secret", "--", "sh", "-c", "echo $A",
    ])
    .ok();
    home.run(["enqueue", "-q", "--id", "long", "--queue", "slow", "--command", LONG_OUTPUT]).ok();
    home.run(["enqueue", "-q", "--id", "dead", "--max-retries", "0", "--", "false"]).ok();
    home.run(["worker", "run", "-q", "--until-empty", "--concurrency", "4"]).ok();
    home.run(["enqueue", "-q", "--id", "later", "--delay", "1h", "--unique-key", "k", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "blocked", "--depends-on", "later,done", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "gone", "--", "true"]).ok();
    home.run(["cancel", "-q", "gone"]).ok();
    home.run(["enqueue", "-q", "--id", "ready", "--priority", "7", "--", "true"]).ok();
    home
}

/// The same, with schedules, hooks, batches and queues, and jobs that use them.
fn fuller_home() -> Home {
    let home = full_home();
    home.run([
        "queue",
        "set",
        "-q",
        "slow",
        "--concurrency",
        "2",
        "--rate",
        "10/m",
        "--limits",
        "nice=5",
        "--retry-on",
        "75",
        "--no-retry-on",
        "2",
    ])
    .ok();
    home.run(["queue", "pause", "-q", "slow", "--reason", "too slow"]).ok();
    for (name, more) in
        [("nightly", &["--cron", "0 3 * * *", "--tz", "Europe/Berlin"][..]), ("often", &["--every", "1h"])]
    {
        let job = ["--env", "S=hush", "--tags", "s", "--", "true"];
        home.run(
            [&["schedule", "add", "-q", name, "--on-missed", "all", "--on-overlap", "queue"], more, &job]
                .concat(),
        )
        .ok();
    }
    home.run(["schedule", "pause", "-q", "often", "--reason", "enough"]).ok();
    home.run(["schedule", "run", "-q", "nightly"]).ok();
    home.run(["hook", "add", "-q", "pager", "--on", "dead", "--queue", "slow", "--command", "cat"]).ok();
    home.call([
        "hook",
        "add",
        "-q",
        "web",
        "--on",
        "dlq-above",
        "--above",
        "0",
        "--url",
        "http://127.0.0.1:9/x",
        "--secret-env",
        "KEY",
    ])
    .env("KEY", "hush-hush")
    .run()
    .ok();
    home.run(["enqueue", "-q", "--id", "b1", "--batch", "many", "--", "true"]).ok();
    home.run([
        "enqueue",
        "-q",
        "--id",
        "b2",
        "--batch",
        "over",
        "--unique-key",
        "u",
        "--unique-for",
        "1h",
        "--",
        "true",
    ])
    .ok();
    home.run(["cancel", "-q", "b2"]).ok();
    home.run([
        "enqueue",
        "-q",
        "--id",
        "odd",
        "--limits",
        "nice=3",
        "--retry-on",
        "1,2",
        "--no-retry-on",
        "3",
        "--depends-on",
        "done",
        "--on-dependency-failure",
        "run",
        "--",
        "true",
    ])
    .ok();
    home
}

pub(crate) fn lines(home: &Home, args: &[&str]) -> Vec<Value> {
    let ran = home.run([&["export"], args].concat()).ok();
    let lines =
        ran.lines().iter().map(|line| serde_json::from_str(line).expect("an object")).collect::<Vec<Value>>();
    // The import itself is recorded as an event.
    lines.into_iter().filter(|line| line["event"] != "import").collect()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    kinds.dedup();
    kinds
}

fn recount(home: &Home) {
    Fixture::sqlite_in(&home.path()).recount();
}

#[test]
fn an_imported_queue_exports_identically() {
    let home = fuller_home();
    home.run(["export", "all.jsonl"]).ok().prints("all.jsonl\n");
    let file = home.folder().join("all.jsonl");
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let exported = lines(&home, &[]);
    assert_eq!(
        kinds(&exported),
        [
            "queuectl",
            "setting",
            "queue",
            "totals",
            "minutes",
            "environment",
            "batch",
            "schedule",
            "job",
            "log",
            "job",
            "dependency",
            "unique_key",
            "event",
            "hook"
        ]
    );
    let other = Home::new();
    other.run(["import", file.to_str().expect("text")]).ok().prints("12\n");
    recount(&other);
    assert_eq!(lines(&other, &[]), exported);
    for question in [
        &["batch", "list"][..],
        &["schedule", "list"],
        &["schedule", "show", "nightly"],
        &["graph", "odd"],
        &["graph", "blocked"],
        &["show", "odd"],
        &["list"],
    ] {
        let answer = |home: &Home| home.run([question, &["--json"]].concat()).ok().json();
        assert_eq!(answer(&other), answer(&home), "{question:?}");
    }
    let hooks = other.run(["hook", "list", "--json"]).ok().json();
    assert!(hooks.as_array().expect("hooks").iter().all(|hook| hook["pending"] == 0), "{hooks}");
    assert_eq!(other.run(["logs", "long"]).ok().stdout, home.run(["logs", "long"]).ok().stdout);
    other.run(["logs", "done"]).ok().prints("secret\n");
    other.run(["edit", "-q", "later", "--delay", "0"]).ok();
    other.run(["worker", "run", "-q", "--until-empty"]).ok();
    for id in ["later", "blocked", "ready", "b1", "odd"] {
        assert_eq!(other.state_of(id), "completed", "{id}");
    }
    assert!(other.run(["batch", "show", "many", "--json"]).ok().json()["finished_at"].is_string());
    // No other job may take a key that is still held.
    other.run(["enqueue", "--id", "b3", "--unique-key", "u", "--", "true"]).ok().prints("b2\n");
    recount(&other);
}

#[test]
fn an_import_does_not_change_existing_queues_schedules_and_hooks() {
    let home = fuller_home();
    home.run(["export", "-q", "all.jsonl"]).ok();
    let other = Home::new();
    other.run(["queue", "set", "-q", "slow", "--concurrency", "7"]).ok();
    other.run(["schedule", "add", "-q", "nightly", "--every", "2h", "--", "false"]).ok();
    other.run(["hook", "add", "-q", "pager", "--on", "success", "--command", "true"]).ok();
    other.run(["hook", "add", "-q", "dlq", "--on", "dlq-above", "--above", "0", "--command", "true"]).ok();
    other.run(["enqueue", "-q", "--id", "mine", "--batch", "many", "--", "true"]).ok();
    other.run(["cancel", "-q", "mine"]).ok();
    other.run(["import", "-q", home.folder().join("all.jsonl").to_str().expect("text")]).ok();
    recount(&other);
    let json = |args: &[&str]| other.run([args, &["--json"]].concat()).ok().json();
    let schedule = json(&["schedule", "show", "nightly"]);
    assert_eq!(
        (&schedule["expression"], schedule["runs"].as_array().map(Vec::len)),
        (&"2h".into(), Some(0)),
        "{schedule}"
    );
    assert!(json(&["batch", "show", "many"])["finished_at"].is_null(), "a job has come that is not");
    let hooks = json(&["hook", "list"]);
    let pending: Vec<(&str, u64)> = hooks
        .as_array()
        .expect("hooks")
        .iter()
        .map(|hook| (hook["name"].as_str().expect("a name"), hook["pending"].as_u64().expect("a number")))
        .collect();
    assert_eq!(
        pending,
        [("dlq", 1), ("pager", 0), ("web", 0)],
        "only hooks that existed before are notified"
    );
}

#[test]
fn selected_jobs_are_exported_with_their_queues_and_batches() {
    let home = fuller_home();
    let exported = lines(&home, &["-", "--state", "dead"]);
    assert_eq!(kinds(&exported), ["queuectl", "queue", "environment", "job"]);
    assert_eq!(exported.iter().filter(|line| line["kind"] == "job").count(), 2);
    let exported = lines(&home, &["-", "b2", "later"]);
    assert_eq!(kinds(&exported), ["queuectl", "queue", "environment", "batch", "job", "unique_key", "event"]);
    home.run(["export", "-", "absent"])
        .fails(3)
        .says("there is no job `absent`\nhint: `queuectl list` shows all jobs");
    home.run(["export", "-", "--state", "daed"]).fails(2).says("did you mean `dead`?");
    home.run(["export", "-q", "child.jsonl", "blocked"]).ok();
    let other = Home::new();
    let child = home.folder().join("child.jsonl");
    let child = child.to_str().expect("text");
    other.run(["import", child]).fails(2).says("on `later`");
    other.run(["enqueue", "-q", "--id", "later", "--", "true"]).ok();
    other.run(["import", "-q", child]).ok();
    other.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(other.state_of("blocked"), "completed");
}

#[test]
fn existing_ids_are_a_conflict_or_skipped() {
    let home = full_home();
    home.run(["export", "-q", "all.jsonl"]).ok();
    let before = lines(&home, &[]);
    home.run(["import", "all.jsonl"]).fails(4).says("there is already a job `fails`").says("--if-absent");
    home.run(["remove", "-q", "long"]).ok();
    home.run(["import", "--if-absent", "--json", "all.jsonl"]).ok().prints("{\"jobs\":1,\"skipped\":7}\n");
    assert_eq!(lines(&home, &[]).len(), before.len() + 1, "and the removal was noted");
    home.run(["logs", "long"]).ok().shows("100000");
    recount(&home);
    home.run(["export", "all.jsonl"]).fails(4).says("`all.jsonl` already exists");
}

#[test]
fn other_processes_write_while_an_import_reads_a_slow_pipe() {
    let from = full_home();
    let exported = from.run(["export"]).ok().stdout.into_bytes();
    let home = Home::with_jobs(&["before"]);
    let pipe = home.folder().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let import = home.call(["import", "-q", "pipe"]).spawn();
    let mut writer = fs::File::options().write(true).open(&pipe).expect("the import reads it");
    let (first, rest) = exported.split_at(exported.len() / 2);
    writer.write_all(first).expect("the import reads on");
    // The import has taken all but what fits into a pipe, and waits for the rest.
    home.run(["enqueue", "-q", "--id", "meanwhile", "--", "true"]).ok();
    writer.write_all(rest).expect("the import reads on");
    drop(writer);
    assert!(end_of(import).success());
    home.run(["logs", "long"]).ok().shows("100000");
    assert_eq!(home.count(), 1 + 1 + 8);
    recount(&home);
}

#[test]
fn environments_can_be_left_out() {
    let home = fuller_home();
    let secret = home.run(["export", "-"]).ok().stdout;
    let left_out = ["\"A\":\"secret\"", "\"S\":\"hush\"", "\"secret\":\"hush-hush\""];
    assert!(left_out.iter().all(|text| secret.contains(text)));
    let exported = home.run(["export", "--no-env", "-"]).ok().stdout;
    assert!(!left_out.iter().any(|text| exported.contains(text)), "{exported}");
    let other = Home::new();
    other.call(["import", "-"]).with_stdin(exported).run().ok().prints("12\n");
    assert!(other.show("done")["env"].as_array().expect("names").is_empty());
    let left: Vec<_> =
        fs::read_dir(other.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("import-")), "{left:?}");
}

#[test]
fn a_running_job_is_imported_as_lost_and_runs_again() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "runs", "--command", UNTIL_GO]).ok();
    home.run(["worker", "start", "-q"]).ok();
    home.wait_for_state("runs", "processing");
    let exported = home.run(["export"]).ok().stdout;
    home.go();
    let other = Home::new();
    other.call(["import", "-"]).with_stdin(exported).run().ok();
    assert_eq!(other.state_of("runs"), "pending");
    assert_eq!(other.show("runs")["history"][0]["outcome"], "lost");
    recount(&other);
    other.run(["worker", "run", "-q", "--until-empty"]).ok();
    assert_eq!(other.state_of("runs"), "completed");
}

#[test]
fn a_job_being_cancelled_is_imported_as_cancelled() {
    let home = WorkingHome::new();
    home.run(["enqueue", "-q", "--id", "runs", "--unique-key", "k", "--command", UNTIL_GO]).ok();
    home.run(["enqueue", "-q", "--id", "next", "--depends-on", "runs", "--", "true"]).ok();
    home.run(["worker", "start", "-q"]).ok();
    home.wait_for_state("runs", "processing");
    let exported = home.run(["export"]).ok().stdout;
    home.go();
    let asked = exported.replacen("\"cancel_requested\":false", "\"cancel_requested\":true", 1);
    let other = Home::new();
    other.call(["import", "-"]).with_stdin(asked).run().ok();
    assert_eq!(
        (other.state_of("runs").as_str(), other.state_of("next").as_str()),
        ("cancelled", "cancelled")
    );
    assert_eq!(other.show("runs")["reason"], "user");
    other.run(["enqueue", "--id", "new", "--unique-key", "k", "--", "true"]).ok().prints("new\n");
    recount(&other);
}

#[test]
fn a_bad_line_is_named_and_nothing_is_stored() {
    let home = full_home();
    let good = home.run(["export", "--no-env"]).ok().stdout;
    let count = good.lines().count();
    let other = Home::new();
    let import = |text: &str| other.call(["import", "-"]).with_stdin(text).run();
    for (text, problem) in [
        (String::new(), "line 1 cannot be read"),
        ("hello\n".to_owned(), "(line 1 is not valid JSON)"),
        (good.lines().skip(1).collect::<Vec<_>>().join("\n"), "not an export: the first line"),
        (
            good.replace("{\"kind\":\"queuectl\",\"format\":1}", "{\"kind\":\"queuectl\",\"format\":99}"),
            "newer",
        ),
        (format!("{good}{{\"kind\":\"jbo\"}}\n"), &*format!("line {} cannot be read", count + 1)),
        (good.replace("\"id\":\"ready\"", "\"id\":\"../ready\""), "../ready"),
        (
            good.replace("\"kind\":\"log\",\"job\":\"long\"", "\"kind\":\"log\",\"job\":\"../long\""),
            "cannot be read",
        ),
        (good.replace("\"concurrency\":null", "\"concurrency\":0"), "queue `default` is invalid"),
        (good.replace("\"waits_for\"", "\"wait_for\""), "unknown field `wait_for`"),
        (
            good.replace("\"outcome\":\"failure\"", "\"outcome\":\"fail\""),
            "job `fails` is invalid: outcome: fail",
        ),
        (good.replace("\"state\":\"dead\"", "\"state\":\"completed\""), "job `fails` is invalid"),
        (good.replace("\"attempt\":1,\"worker_id\"", "\"attempt\":2,\"worker_id\""), "its history has gaps"),
        (
            good.replace(
                "\"kind\":\"dependency\",\"job\":\"blocked\"",
                "\"kind\":\"dependency\",\"job\":\"done\"",
            ),
            "the job does not wait for any other",
        ),
    ] {
        let ran = import(&text).fails(2).says("nothing was imported");
        assert!(ran.stderr.contains(problem), "{problem}: {ran}");
        assert!(other.is_empty(), "{problem}");
    }
    import(&good).ok();
    home.run(["import", "nowhere.jsonl"]).fails(2).says("failed to read `nowhere.jsonl`");
}

#[test]
fn an_expired_unique_key_is_not_a_conflict() {
    let (home, other) = (Home::new(), Home::new());
    home.run(["enqueue", "-q", "--id", "old", "--unique-key", "k", "--unique-for", "1ms", "--", "true"]).ok();
    other.run(["enqueue", "-q", "--id", "new", "--unique-key", "k", "--", "true"]).ok();
    let exported = other.folder().join("all.jsonl");
    other.run(["export", "all.jsonl"]).ok();
    home.run(["import", exported.to_str().expect("a path")]).ok();
    let again = home.run(["enqueue", "--unique-key", "k", "--", "true"]).ok();
    assert_eq!(again.lines(), ["new"], "it holds the key now");
    recount(&home);
}

#[test]
fn dependencies_of_finished_jobs_are_imported() {
    let (home, other) = (Home::new(), Home::new());
    home.run(["enqueue", "-q", "--id", "build", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "test", "--depends-on", "build", "--", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    home.run(["export", "all.jsonl"]).ok();
    let exported = home.folder().join("all.jsonl");
    other.run(["import", "-q", exported.to_str().expect("a path")]).ok();
    recount(&other);
    other.run(["graph", "build"]).ok().prints(&home.run(["graph", "build"]).ok().stdout);
    let from_test = home.run(["graph", "test"]).ok().shows("build").stdout;
    other.run(["graph", "test"]).ok().prints(&from_test);
}

#[test]
fn workers_of_imported_attempts_are_kept() {
    let home = Home::new();
    home.run(["run", "-q", "--id", "a", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "b", "--", "true"]).ok();
    home.run(["worker", "run", "-q", "--until-empty"]).ok();
    let before = ["a", "b"].map(|id| home.show(id)["history"].clone());
    home.run(["export", "all.jsonl"]).ok();
    for id in ["a", "b"] {
        home.run(["remove", "-q", id]).ok();
    }
    home.run(["import", "-q", "all.jsonl"]).ok();
    home.run(["prune", "-q"]).ok();
    assert_eq!(["a", "b"].map(|id| home.show(id)["history"].clone()), before);
}

#[test]
fn a_progress_bar_is_shown_on_a_terminal() {
    let home = full_home();
    let seen = on_terminal(home.call(["export", "all.jsonl"]).into_command(), 100, "");
    assert!(seen.screen.contains("exporting") && seen.screen.contains("of 8"), "{}", seen.screen);
    assert!(seen.screen.ends_with("8 jobs exported to all.jsonl\n"), "{}", seen.screen);
    let other = Home::new();
    let file = home.folder().join("all.jsonl");
    let seen = on_terminal(other.call(["import", file.to_str().expect("text")]).into_command(), 100, "");
    let at = |part: &str| seen.screen.find(part).unwrap_or_else(|| panic!("{part}: {}", seen.screen));
    assert!(at("checking 1") < at("importing") && at("importing") < at("8 jobs imported"), "{}", seen.screen);
    let seen = on_terminal(home.call(["export"]).into_command(), 100, "");
    assert!(!seen.screen.contains("exporting"), "the lines are on the terminal: {}", seen.screen);
}

#[test]
fn a_paused_reader_does_not_block_wal_checkpoints() {
    let home = Home::new();
    let line = |at: usize| format!("{{\"id\":\"j{at}\",\"command\":\"true {}\"}}\n", "x".repeat(2_000));
    home.call(["enqueue", "-q", "-"]).with_stdin((0..300).map(line).collect::<String>()).run().ok();
    let mut export = home.call(["export"]).spawn();
    let mut stdout = export.stdout.take().expect("a pipe");
    let mut exported = vec![0];
    stdout.read_exact(&mut exported).expect("it begins");
    // More than a pipe holds, and no further reading: the snapshot must still be released, so that the log can restart.
    let database = Connection::open(home.database()).expect("the database opens");
    database.busy_timeout(Duration::ZERO).expect("it does not wait");
    wait_until("the log can begin anew", || {
        home.run(["enqueue", "-q", "--", "true"]).ok();
        let busy: i64 = database
            .query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))
            .expect("the statement is right");
        busy == 0
    });
    stdout.read_to_end(&mut exported).expect("it ends");
    assert!(export.wait().expect("it ends").success());
    let exported = String::from_utf8(exported).expect("text");
    assert_eq!(exported.lines().filter(|line| line.contains("\"kind\":\"job\"")).count(), 300, "as it was");
}

/// An export of dependent jobs, changed so that the first waits for the last.
fn cyclic_export(home: &Home) -> Vec<Value> {
    home.run(["enqueue", "-q", "--id", "a", "--delay", "1h", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "b", "--depends-on", "a", "--", "true"]).ok();
    home.run(["enqueue", "-q", "--id", "c", "--depends-on", "b", "--", "true"]).ok();
    let mut lines = lines(home, &[]);
    let first =
        lines.iter_mut().find(|line| line["kind"] == "job" && line["id"] == "a").expect("the first job");
    first["depends_on"] = json!(["c"]);
    first["blocked_by"] = 1.into();
    lines.push(json!({ "kind": "dependency", "job": "a", "waits_for": "c" }));
    lines
}

fn import_lines(home: &Home, lines: &[Value]) -> RunResult {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    home.file("in.jsonl", lines.join("\n"));
    home.run(["import", "in.jsonl"])
}

#[test]
fn an_import_with_a_dependency_cycle_is_refused() {
    let (home, other) = (Home::new(), Home::new());
    let lines = cyclic_export(&home);
    import_lines(&other, &lines)
        .fails(2)
        .says("it waits for itself through its dependencies")
        .says("nothing was imported")
        .says("hint: ");
    assert!(other.is_empty());
}

#[test]
fn an_import_with_duplicate_or_invented_dependencies_is_refused() {
    for waits_for in ["a", "c"] {
        let (home, other) = (Home::new(), Home::new());
        let mut lines = cyclic_export(&home);
        lines.pop();
        let first =
            lines.iter_mut().find(|line| line["kind"] == "job" && line["id"] == "a").expect("the first job");
        first["depends_on"] = json!([]);
        first["blocked_by"] = 0.into();
        let second =
            lines.iter_mut().find(|line| line["kind"] == "job" && line["id"] == "b").expect("the second");
        second["blocked_by"] = 2.into();
        lines.push(json!({ "kind": "dependency", "job": "b", "waits_for": waits_for }));
        let problem = "the job does not depend on it, or the line is repeated";
        import_lines(&other, &lines).fails(2).says(&format!("`b` on `{waits_for}`")).says(problem);
        assert!(other.is_empty());
    }
}
